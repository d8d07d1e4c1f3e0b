"""The entity links of a task: which entities of a graph its attributes speak of, by a person's word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import Reject, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, GridRow, header_name, places_of, width_problem
from kgrag_assets.schemas.readers.name_lookup import Name, NameLookup

REQUIRED = ("side", "table", "column", "entity_id")
ALIASES = {name: name for name in (*REQUIRED, "label")}
SIDES = ("source", "target")


@dataclass(frozen=True)
class FoundLink:
    """An attribute, as its schema spells it, with an entity that it speaks of."""

    side: str
    name: Name
    entity_id: str
    label: str


def read_entity_links(
    grids: Sequence[Grid], columns: Mapping[str, Collection[Name]], left_out: Mapping[str, Collection[Name]]
) -> tuple[list[FoundLink], list[Reject]]:
    """Read the links and look up their attributes; an attribute may have several entities.

    Whether the graphs have the entities is not looked at here: a link to one that they lack is a miss of theirs.

    Args:
        grids: the file, or all sheets of it.
        columns: by side, table and column of each attribute.
        left_out: by side, the names that the task's own filter took out.

    Returns:
        The links, each once, and a reject for each row that is none.

    Raises:
        SchemaError: the first row does not name the columns side, table, column and entity_id.
    """
    lookups = {side: NameLookup(columns[side], left_out.get(side, ())) for side in SIDES}
    links: dict[tuple[str, Name, str], FoundLink] = {}
    rejects: list[Reject] = []
    for grid in grids:
        rejects.extend(grid.rejects)
        header = grid.rows[0]
        if not set(REQUIRED) <= {header_name(cell) for cell in header.values}:
            raise SchemaError(f"{grid.shown}: the first row must name the columns {', '.join(REQUIRED)}")
        places = places_of(header, ALIASES, grid.shown)
        for row in grid.rows[1:]:
            problem = width_problem(row, header)
            link = problem or _link(row, places, lookups)
            if isinstance(link, FoundLink) and (link.side, link.name, link.entity_id) in links:
                link = "the same link stands above: remove one"
            if isinstance(link, str):
                rejects.append(Reject(grid.shown, row.number, link, shown_row(row.values)))
            else:
                links[link.side, link.name, link.entity_id] = link
    return list(links.values()), rejects


def _link(row: GridRow, places: Mapping[str, int], lookups: Mapping[str, NameLookup]) -> FoundLink | str:
    values = {name: trimmed(row.values[place]) for name, place in places.items()}
    for name in REQUIRED:
        if not values[name]:
            return f"{name} is missing: fill it in or remove the row"
    side = values["side"].lower()
    if side not in SIDES:
        return f"side is {values['side']!r}: write source or target"
    if ":" not in values["entity_id"]:
        return f"entity_id is {values['entity_id']!r}: write it with its graph, such as wd:Q42"
    found = lookups[side].find(side, (values["table"], values["column"]))
    if isinstance(found, str):
        return found
    return FoundLink(side, found, values["entity_id"], values.get("label", ""))
