"""The reference of a task: which correspondences somebody wrote down, looked up in the schemas as read."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundPair, Reject, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, header_name, places_of, width_problem

NAMES = ("source_table", "source_column", "target_table", "target_column")
ALIASES = {name: name for name in NAMES}

Name = tuple[str, str]

_HINT_NAMES = 2000


def read_reference(grids: Sequence[Grid]) -> tuple[list[FoundPair], list[Reject]]:
    """Read the pairs of a reference file; nothing is looked up yet.

    Args:
        grids: the file, or all sheets of it; those without the header are skipped with a reject row.

    Raises:
        SchemaError: there is no header with the four columns.
    """
    pairs: list[FoundPair] = []
    rejects: list[Reject] = []
    headers = 0
    for grid in grids:
        rejects.extend(grid.rejects)
        header = grid.rows[0]
        if not set(NAMES) <= {header_name(cell) for cell in header.values}:
            reason = f"no header with {', '.join(NAMES)}"
            rejects.append(Reject(grid.shown, header.number, reason, shown_row(header.values)))
            continue
        headers += 1
        places = places_of(header, ALIASES, grid.shown)
        for row in grid.rows[1:]:
            problem = width_problem(row, header)
            names = [] if problem else [trimmed(row.values[places[name]]) for name in NAMES]
            if not problem and not all(names):
                problem = f"{NAMES[names.index('')]} is missing: fill it in or remove the row"
            if problem:
                rejects.append(Reject(grid.shown, row.number, problem, shown_row(row.values)))
            else:
                source_table, source_column, target_table, target_column = names
                pairs.append(
                    FoundPair(source_table, source_column, target_table, target_column, grid.shown, row.number)
                )
    if not headers:
        raise SchemaError(f"{grids[0].shown}: the first row must name the columns {', '.join(NAMES)}")
    return pairs, rejects


@dataclass
class _Lookup:
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


def resolve(
    pairs: Iterable[FoundPair],
    source: Collection[Name],
    target: Collection[Name],
    left_out: Mapping[str, Collection[Name]],
) -> tuple[list[tuple[Name, Name]], list[Reject]]:
    """Look up the pairs' names in the schemas: exactly, or else by the only one that differs in case and ends.

    Args:
        pairs: the pairs as stated.
        source: table and column of each source attribute.
        target: of each target attribute.
        left_out: by side, the names that the task's own filter took out.

    Returns:
        The pairs as the schemas spell them, each once, and a reject for each that names no column or
        stands there twice.
    """
    lookups = {
        "source": _Lookup(source, left_out.get("source", ())),
        "target": _Lookup(target, left_out.get("target", ())),
    }
    found: dict[tuple[Name, Name], FoundPair] = {}
    rejects: list[Reject] = []
    for pair in pairs:
        content = shown_row((pair.source_table, pair.source_column, pair.target_table, pair.target_column))
        source_name = lookups["source"].find("source", (pair.source_table, pair.source_column))
        target_name = lookups["target"].find("target", (pair.target_table, pair.target_column))
        if isinstance(source_name, str) or isinstance(target_name, str):
            reasons = [reason for reason in (source_name, target_name) if isinstance(reason, str)]
            rejects.append(Reject(pair.file, pair.row, "; ".join(reasons), content))
            continue
        earlier = found.get((source_name, target_name))
        if earlier is not None:
            where = f"row {earlier.row} of {earlier.file}" if earlier.row else earlier.file
            rejects.append(Reject(pair.file, pair.row, f"the same pair stands in {where}: remove one", content))
            continue
        found[source_name, target_name] = pair
    return list(found), rejects
