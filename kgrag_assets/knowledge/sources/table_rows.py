"""Rows of tables of triples and of entities, whatever file they come from: columns, ids made of texts, checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.knowledge.collector import Collector, id_problem
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.lines import is_id
from kgrag_assets.knowledge.sources.wikidata_values import one_line

TRIPLES, ENTITIES = "triples", "entities"
_TRIPLES_NEED, _ENTITIES_NEED = ("head", "relation"), ("id",)
# A cell is a text, or in Parquet a list of aliases; None where it is empty or its column is missing.
Cell = str | Sequence[str] | None

COLUMNS = {
    TRIPLES: (
        *("head", "relation", "tail", "tail_value"),
        *("head_label", "relation_label", "tail_label", "head_description", "tail_description"),
        *("head_aliases", "relation_aliases", "tail_aliases"),
    ),
    ENTITIES: ("id", "label", "aliases", "description", "kind"),
}
_OTHER_NAMES = {"subject": "head", "predicate": "relation", "object": "tail"}
# A label that is given comes before the text that an id was made of, and that before one made of an id.
_GIVEN, _TEXT, _MADE = range(3)
_ALIAS, _DESCRIPTION = 3, 4
_ENTITY, _RELATION = "entity", "relation"


@dataclass(frozen=True)
class Layout:
    """What a table holds, and the place of each known column."""

    kind: str
    places: Mapping[str, int]


def layout_of(header: Sequence[str]) -> Layout | str:
    """Tell by its column names what a table holds, or say what they lack."""
    names = [name.strip().lower().lstrip("\ufeff") for name in header]
    names = [_OTHER_NAMES.get(name, name) for name in names]
    if {"node1", "node2"} <= set(names):
        return "node1 and node2 are columns of the format kgtk: write `format: kgtk` in kg.yaml"
    needs = ((TRIPLES, _TRIPLES_NEED), (ENTITIES, _ENTITIES_NEED))
    kind = next((kind for kind, needed in needs if all(name in names for name in needed)), None)
    if kind is None:
        return (
            "the header must name head, relation and tail (a table of triples) or id and label (a table of entities), "
            f"not {', '.join(header)[:200]}"
        )
    if kind == TRIPLES and not ("tail" in names or "tail_value" in names):
        return "the header lacks tail (an id) or tail_value (a literal)"
    places = {name: names.index(name) for name in COLUMNS[kind] if name in names}
    twice = [name for name in places if names.count(name) > 1]
    if twice:
        return f"the header names {twice[0]} twice"
    return Layout(kind, places)


class TableRows:
    """Takes the rows of one unit; remembers what was noted already.

    An id may be plain text: white space becomes ``_`` (``has part`` is ``has_part``), and the text is the label
    where none is given. A relation whose id has ``_`` is called by it in words where nothing else names it.

    A row is its cells in the order of the layout's places, with None behind the last one, which stands for every
    column that the table lacks.
    """

    def __init__(self, layout: Layout, options: ReadOptions, into: Collector) -> None:
        self.options, self.into = options, into
        self.take: Callable[[Sequence[Cell]], str | None]
        places = {name: layout.places.get(name, -1) for name in COLUMNS[layout.kind]}
        if layout.kind == TRIPLES:
            self.take = self._triple
            self.at = tuple(places[name] for name in ("head", "relation", "tail", "tail_value"))
        else:
            self.take = self._entity
            self.at = (places["id"], places["kind"])
        self.more_head, self.more_relation = _more(places, "head_"), _more(places, "relation_")
        self.more_tail, self.more_entity = _more(places, "tail_"), _more(places, "")
        self.listed: set[str] = set()
        self.relations: dict[str, bool] = {}
        self.noted: set[tuple[int, str, str]] = set()

    def _triple(self, row: Sequence[Cell]) -> str | None:
        at_head, at_relation, at_tail, at_value = self.at
        head, relation, tail, value = row[at_head], row[at_relation], row[at_tail], row[at_value]
        head_text = relation_text = tail_text = problem = None
        if type(head) is not str or not is_id(head):
            head, head_text, problem = self._made(head)
            if problem is not None:
                return f"head: {problem}"
        if type(relation) is not str or not is_id(relation):
            relation, relation_text, problem = self._made(relation)
            if problem is not None:
                return f"relation: {problem}"
        value = _text(value) if value else ""
        if value and _text(tail):
            return "a row has a tail (an id) or a tail_value (a literal), not both"
        if not value and (type(tail) is not str or not is_id(tail)):
            tail, tail_text, problem = self._made(tail)
            if problem is not None:
                return f"tail: {problem}"
        wanted = self.relations.get(relation)
        if wanted is None:
            wanted = self._decide(relation)
        if not wanted or (value and not self.options.literals):
            return None
        if head not in self.listed:
            self.listed.add(head)
            self.into.listed(head)
        self._note(head, head_text, self.more_head, row)
        self._note(relation, relation_text, self.more_relation, row)
        if value:
            self.into.literal(head, relation, value)
        elif type(tail) is str:
            self._note(tail, tail_text, self.more_tail, row)
            self.into.edge(head, relation, tail)
        return None

    def _note(self, local: str, text: str | None, places: tuple[int, int, int] | None, row: Sequence[Cell]) -> None:
        """Take what a row says about one of its parts: the text that its id was made of, and further columns."""
        if text is not None:
            self._once(_TEXT, local, text)
        if places is not None:
            self._described(local, places, row)

    def _decide(self, relation: str) -> bool:
        """Decide whether statements with a relation are read; if so it is noted."""
        wanted = self.relations[relation] = self.options.wants_relation(relation)
        if wanted:
            self.into.relation(relation)
            if "_" in relation:
                self.into.label(relation, relation.replace("_", " ").strip() or relation, _MADE)
        return wanted

    def _entity(self, row: Sequence[Cell]) -> str | None:
        local, text, problem = self._made(row[self.at[0]])
        if problem is not None:
            return f"id: {problem}"
        kind = _text(row[self.at[1]]).lower() or _ENTITY
        if kind not in (_ENTITY, _RELATION):
            return f"kind must be entity or relation, not {kind[:60]!r}"
        self.into.listed(local)
        if kind == _RELATION:
            self.into.relation(local)
        self._note(local, text, self.more_entity, row)
        return None

    def _described(self, local: str, places: tuple[int, int, int], row: Sequence[Cell]) -> None:
        label, aliases, description = (row[place] for place in places)
        if label and isinstance(label, str):
            self._once(_GIVEN, local, label)
        if aliases:
            for text in _texts(aliases):
                self._once(_ALIAS, local, text)
        if description and isinstance(description, str):
            self._once(_DESCRIPTION, local, description)

    def _once(self, what: int, local: str, written: str) -> None:
        """Take a text of a table, which may say it in every row, once."""
        key = (what, local, written)
        if key in self.noted:
            return
        self.noted.add(key)
        text = _text(written)
        if not text:
            return
        if what == _ALIAS:
            self.into.alias(local, text)
        elif what == _DESCRIPTION:
            self.into.describe(local, text)
        else:
            self.into.label(local, text, what)

    def _made(self, cell: Cell) -> tuple[str, str | None, str | None]:
        """Return the id that a cell stands for, the text it was made of where that is another, what is wrong."""
        text = _text(cell)
        local = text.replace(" ", "_")
        return local, None if text == local else text, None if is_id(local) else id_problem(local)


def _more(places: Mapping[str, int], prefix: str) -> tuple[int, int, int] | None:
    """Return the places of a part's label, aliases and description; None where the table has none of them."""
    label, aliases, description = (places.get(prefix + name, -1) for name in ("label", "aliases", "description"))
    return None if label == aliases == description == -1 else (label, aliases, description)


def _text(cell: Cell) -> str:
    return one_line(cell) if isinstance(cell, str) else ""


def _texts(cell: Cell) -> list[str]:
    """Return the texts of a cell: separated by ``|``, or a list."""
    if cell is None:
        return []
    parts = cell.split("|") if isinstance(cell, str) else [part for part in cell if isinstance(part, str)]
    return [text for text in map(_text, parts) if text]
