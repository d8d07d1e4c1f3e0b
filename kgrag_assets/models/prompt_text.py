"""What every prompt is made of: templates from files, and text by others, made harmless and fenced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kgrag_assets.rows.keys import Part, key_of

CUT = " [cut]"

_SECTION = re.compile(r"^# (system|user)\n", re.MULTILINE)


@dataclass(frozen=True)
class PromptTemplate:
    """A template's two parts (with ``$name`` where values go), and its version: its name with a hash of its text."""

    system: str
    user: str
    version: str


@cache
def read_template(package: str, name: str, *limits: int | str) -> PromptTemplate:
    """Read a template from ``prompts/<name>.md`` of a package.

    Args:
        package: such as ``kgrag_assets.judging``.
        name: name of the file.
        limits: how values are shown in it; they are part of the version.

    Raises:
        ValueError: it has not one ``# system`` and one ``# user`` section.
    """
    text = (resources.files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    pieces = _SECTION.split(text)
    if pieces[0].strip() or pieces[1::2] != ["system", "user"]:
        raise ValueError(f"prompts/{name}.md must have a '# system' section and then a '# user' section, nothing else")
    digest = key_of("prompt", text, *limits)[:8]
    return PromptTemplate(pieces[2].strip(), pieces[4].strip(), f"{name}@{digest}")


def fence_of(*parts: Part) -> str:
    """Name a fence by a hash of what stands inside it: no text can hold the fence that closes it."""
    return "DATA-" + key_of("fence", *parts)[:12]


def fenced(fence: str, lines: Iterable[str]) -> str:
    """Join lines that stand between fences; whatever looks like a fence in them is taken apart.

    Lines hold no line breaks (``shown`` sees to it), so nothing in them can begin a line of its own.
    """
    text = "\n".join(lines)
    text = re.sub(re.escape(fence), "[fence]", text, flags=re.IGNORECASE)
    return text.replace("<<<", "< < <").replace(">>>", "> > >")


def one_line(text: str) -> str:
    """Return a text as one line without invisible characters."""
    kept = "".join(
        " " if unicodedata.category(character) in ("Cc", "Zl", "Zp") else character
        for character in text
        if unicodedata.category(character) not in ("Cf", "Cs", "Co", "Cn")
    )
    return " ".join(kept.split())


def shown(text: str, length: int) -> str:
    """Return a text as one line of at most ``length`` characters, without invisible ones; a cut is visible."""
    line = one_line(text)
    return line if len(line) <= length else line[: length - len(CUT)].rstrip() + CUT
