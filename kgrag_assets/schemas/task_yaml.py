"""What ``task.yaml`` may say: every key checked, nothing guessed, unknown keys refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kgrag_assets.schemas.errors import SchemaError

_MAX_BYTES = 1024 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

FORMATS = ("schema", "omop-cdm", "whiterabbit", "ddl", "data", "folder", "duckdb", "sqlite")


@dataclass(frozen=True)
class SideEntry:
    """What ``source:`` or ``target:`` says; None where it says nothing."""

    builtin: str | None = None
    path: str | None = None
    connection_env: str | None = None
    schema: str | None = None
    format: str | None = None
    dialect: str | None = None
    tables: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TaskEntry:
    """What ``task.yaml`` says as a whole."""

    title: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    source: SideEntry = SideEntry()
    target: SideEntry = SideEntry()
    sheet: str | None = None
    reference: str | None = None


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SchemaError(f"{where}: must be a text; found {value!r}: put quotes around it")
    return value


def _names(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise SchemaError(f"{where}: must be a list of names, such as [person, visit_occurrence]; found {value!r}")
    return tuple(_text(name, f"{where}[{place}]") for place, name in enumerate(value))


def _variable(value: object, where: str) -> str:
    name = _text(value, where)
    if not _VARIABLE.fullmatch(name):
        # Not repeated in the message: somebody may have written the connection string itself here.
        raise SchemaError(f"{where}: must be the name of an environment variable, not the connection string itself")
    return name


def _format(value: object, where: str) -> str:
    if value not in FORMATS:
        raise SchemaError(f"{where}: {value!r} is not a format: use one of {', '.join(FORMATS)}")
    return str(value)


def _mapping(value: object, where: str, allowed: tuple[str, ...]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SchemaError(f"{where}: must be a mapping with {', '.join(allowed)}; found {value!r}")
    unknown = [key for key in value if key not in allowed]
    if unknown:
        raise SchemaError(f"{where}: unknown key {unknown[0]!r}: use {', '.join(allowed)}")
    return value


_SIDE_KEYS: dict[str, Callable[[object, str], Any]] = {
    "builtin": _text,
    "path": _text,
    "connection_env": _variable,
    "schema": _text,
    "format": _format,
    "dialect": _text,
    "tables": _names,
}


def _side(value: object, where: str) -> SideEntry:
    entry = _mapping(value, where, tuple(_SIDE_KEYS))
    side = SideEntry(**{key: _SIDE_KEYS[key](given, f"{where}.{key}") for key, given in entry.items()})
    ways = [key for key in ("builtin", "path", "connection_env") if getattr(side, key) is not None]
    if len(ways) > 1:
        raise SchemaError(f"{where}: has {' and '.join(ways)}: keep one of them")
    if side.schema is not None and side.connection_env is None:
        raise SchemaError(f"{where}.schema: goes with connection_env only")
    return side


def read_task_yaml(path: Path) -> TaskEntry:
    """Read and check a ``task.yaml``; a missing file says nothing.

    Raises:
        SchemaError: it cannot be read, is no YAML mapping, or has a key or value that is not allowed.
    """
    try:
        if not path.exists():
            return TaskEntry()
        if path.stat().st_size > _MAX_BYTES:
            raise SchemaError(f"{path}: larger than 1 MB: this file holds settings only")
        loaded = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise SchemaError(f"{path}{where}: is not valid YAML: {problem}") from error
    if loaded is None:
        return TaskEntry()
    entry = _mapping(loaded, str(path), ("title", "options", "source", "target", "sheet", "reference"))
    options = entry.get("options")
    if options is not None and not (isinstance(options, dict) and all(isinstance(key, str) for key in options)):
        raise SchemaError(f"{path}: options: must be a mapping of sections to settings; found {options!r}")

    def text(key: str) -> str | None:
        return _text(entry[key], f"{path}: {key}") if entry.get(key) is not None else None

    def side(key: str) -> SideEntry:
        return _side(entry[key], f"{path}: {key}") if entry.get(key) is not None else SideEntry()

    return TaskEntry(
        title=text("title"),
        options=dict(options) if isinstance(options, dict) else {},
        source=side("source"),
        target=side("target"),
        sheet=text("sheet"),
        reference=text("reference"),
    )
