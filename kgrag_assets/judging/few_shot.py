"""Examples of decided pairs that a user puts into the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from kgrag_assets.models.prompt_text import shown
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import SettingsError

MOST_EXAMPLES = 20
_NAME, _TEXT = 200, 300

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Side(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    table: _Text
    column: _Text
    description: str = ""
    type: str = ""


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    source: _Side
    target: _Side
    match: bool
    reason: _Text


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    examples: tuple[_Example, ...] = Field(min_length=1, max_length=MOST_EXAMPLES)


@dataclass(frozen=True)
class Examples:
    """Examples as lines of a prompt, and the hash of these."""

    lines: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Part of the prompt's version; empty without examples."""
        return "+" + key_of("examples", list(self.lines))[:8] if self.lines else ""


NO_EXAMPLES = Examples()


def read_examples(path: Path | None) -> Examples:
    """Read a file of examples: ``examples:``, a list of ``source``, ``target`` (table, column), ``match``, ``reason``.

    Args:
        path: a YAML file; None for no examples.

    Raises:
        SettingsError: it cannot be read, or an entry is not an example; the message names file and entry.
    """
    if path is None:
        return NO_EXAMPLES
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the examples of the prompt cannot be read: {error}") from error
    return _parsed(text, str(path))


@lru_cache(maxsize=16)
def _parsed(text: str, origin: str) -> Examples:
    try:
        document = _Document.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise SettingsError(f"{origin} is not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in first["loc"])
        raise SettingsError(f"{origin}: {where or 'the file'}: {first['msg']}") from error
    return Examples(tuple(line for example in document.examples for line in _lines(example)))


def _lines(example: _Example) -> list[str]:
    verdict: Literal["match", "no match"] = "match" if example.match else "no match"
    return [f"{_side(example.source)} | {_side(example.target)} | {verdict}: {shown(example.reason, _TEXT)}"]


def _side(side: _Side) -> str:
    name = f"{shown(side.table, _NAME)}.{shown(side.column, _NAME)}"
    kind = f" [{shown(side.type, _NAME)}]" if side.type.strip() else ""
    return f"{name}{kind}" + (f" ({shown(side.description, _TEXT)})" if side.description.strip() else "")
