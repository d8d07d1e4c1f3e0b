"""The schemas that the product carries: targets that a task names instead of bringing a file."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "builtin"


def builtin_targets() -> dict[str, Path]:
    """Return the built-in targets: name, such as ``omop-5.4``, and CSV file in the schema layout."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.csv"))}
