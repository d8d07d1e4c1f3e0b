"""Reading text that should be one JSON object, and may be anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def json_object_of(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that a text is; None where it is not JSON, or something else in JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_note(path: Path) -> dict[str, Any]:
    """Read a small JSON file, empty where it is missing or damaged."""
    try:
        return json_object_of(path.read_bytes()) or {}
    except OSError:
        return {}
