"""Finding a table and column that a file names in a schema as it was read."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field

from kgrag_assets.schemas.found import trimmed

Name = tuple[str, str]

_HINT_NAMES = 2000


@dataclass
class NameLookup:
    """Finds a name in one schema: as it stands, or else the only one that differs in case and ends."""

    names: Collection[Name]
    left_out: Collection[Name]
    _folded: dict[Name, list[Name]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            self._folded.setdefault(self._fold(name), []).append(name)

    @staticmethod
    def _fold(name: Name) -> Name:
        return trimmed(name[0]).casefold(), trimmed(name[1]).casefold()

    def find(self, side: str, name: Name) -> Name | str:
        """Return the schema's name, or say as text why there is none."""
        if name in self.names:
            return name
        table, column = name
        near = self._folded.get(self._fold(name), [])
        if len(near) == 1:
            return near[0]
        if near:
            return (
                f"the {side} has {len(near)} columns that differ from {table}.{column} in case only: write it exactly"
            )
        if self._fold(name) in {self._fold(left) for left in self.left_out}:
            return f"the table of {side} column {table}.{column} is left out by 'tables' in task.yaml"
        # A hint is worth a search of a schema of usual size, not seconds per row of a very large one.
        known_names = [f"{known[0]}.{known[1]}" for known in self.names] if len(self.names) <= _HINT_NAMES else []
        likely = difflib.get_close_matches(f"{table}.{column}", known_names, n=1, cutoff=0.6)
        hint = f": did you mean {likely[0]}?" if likely else ": correct the name or remove the row"
        return f"the {side} has no column {table}.{column}{hint}"
