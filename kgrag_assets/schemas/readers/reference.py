"""The reference of a task: which correspondences somebody wrote down, looked up in the schemas as read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundPair, Reject, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, header_name, places_of, width_problem
from kgrag_assets.schemas.readers.name_lookup import Name, NameLookup

NAMES = ("source_table", "source_column", "target_table", "target_column")
ALIASES = {name: name for name in NAMES}


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
        "source": NameLookup(source, left_out.get("source", ())),
        "target": NameLookup(target, left_out.get("target", ())),
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
