"""The queries of the remote search. Nodes come as written by ``Vocabulary.entity``; nothing else is put in."""

from __future__ import annotations

from collections.abc import Sequence

from kgrag_assets.knowledge.sparql.terms import literal
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary

OUT, IN = "out", "in"


class Templates:
    """Queries over one vocabulary.

    Where a node may have millions of statements, a sub-select with a limit and without an order bounds what the
    endpoint has to read: ordering them would mean reading them all.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Take the vocabulary."""
        self._relation = literal(vocabulary.relation_prefix)
        self._entity = literal(vocabulary.entity_prefix)
        self._words = vocabulary

    def rings(self, nodes: Sequence[str], limit: int, *, loops: bool) -> str:
        """Ask for statements around nodes: ``?seed ?p ?other ?way``, at most ``limit`` a node and direction."""
        parts = []
        for node in nodes:
            for way, pattern in ((OUT, f"{node} ?p ?other ."), (IN, f"?other ?p {node} .")):
                proper = "" if loops else f"FILTER(?other != {node}) "
                parts.append(
                    f"{{ SELECT DISTINCT ({node} AS ?seed) ?p ?other ({literal(way)} AS ?way) WHERE {{ {pattern} "
                    f"{proper}{self._states('?p')} {self._is_entity('?other')} }} LIMIT {limit} }}"
                )
        return f"SELECT ?seed ?p ?other ?way WHERE {{\n{_union(parts)}\n}}"

    def degrees(self, nodes: Sequence[str], limit: int) -> str:
        """Ask for the number of statements of nodes, both directions, counted up to ``limit``: ``?node ?n``."""
        parts = []
        for node in nodes:
            both = _union(
                [
                    f"{{ {pattern} {self._states('?p')} {self._is_entity('?other')} BIND({literal(way)} AS ?way) }}"
                    for way, pattern in ((OUT, f"{node} ?p ?other ."), (IN, f"?other ?p {node} ."))
                ]
            )
            parts.append(
                f"{{ SELECT ({node} AS ?node) (COUNT(*) AS ?n) WHERE {{ "
                f"{{ SELECT DISTINCT ?p ?other ?way WHERE {{ {both} }} LIMIT {limit} }} }} }}"
            )
        return f"SELECT ?node ?n WHERE {{\n{_union(parts)}\n}}"

    def links(self, nodes: Sequence[str], others: Sequence[str]) -> str:
        """Ask for all statements between two sets of nodes, either direction: ``?x ?p ?y ?way``; to be paged."""
        # The values stand in both branches, so that no engine joins them with all statements of the graph.
        values = f"VALUES ?x {{ {' '.join(nodes)} }} VALUES ?y {{ {' '.join(others)} }}"
        parts = [
            f"{{ {values} {pattern} {self._states('?p')} BIND({literal(way)} AS ?way) }}"
            for way, pattern in ((OUT, "?x ?p ?y ."), (IN, "?y ?p ?x ."))
        ]
        return f"SELECT DISTINCT ?x ?p ?y ?way WHERE {{\n{_union(parts)}\n}}"

    def common(self, one: str, two: str) -> str:
        """Ask for common neighbours with the statements that make them so: ``?m ?p1 ?way1 ?p2 ?way2``; to be paged."""
        parts = []
        for way1, first in ((OUT, f"{one} ?p1 ?m ."), (IN, f"?m ?p1 {one} .")):
            for way2, second in ((OUT, f"{two} ?p2 ?m ."), (IN, f"?m ?p2 {two} .")):
                parts.append(
                    f"{{ {first} {second} {self._states('?p1')} {self._states('?p2')} {self._is_entity('?m')} "
                    f"FILTER(?m != {one} && ?m != {two}) "
                    f"BIND({literal(way1)} AS ?way1) BIND({literal(way2)} AS ?way2) }}"
                )
        return f"SELECT DISTINCT ?m ?p1 ?way1 ?p2 ?way2 WHERE {{\n{_union(parts)}\n}}"

    def statements(self, nodes: Sequence[str], limit: int) -> str:
        """Ask for statements around one entity, literals and all: ``?p ?other ?way``, ``limit`` a direction.

        Args:
            nodes: the IRIs that the entity's id stands for.
            limit: at most so many of each direction.
        """
        names = ", ".join(f"<{name}>" for name in (self._words.label, self._words.alias, self._words.description))
        values = f"VALUES ?e {{ {' '.join(nodes)} }}"
        leaving = f"{values} ?e ?p ?other . {self._states('?p')} FILTER(?p NOT IN ({names}))"
        reaching = f"{values} ?other ?p ?e . {self._states('?p')} {self._is_entity('?other')}"
        parts = [
            f"{{ SELECT DISTINCT ?p ?other ({literal(way)} AS ?way) WHERE {{ {pattern} }} LIMIT {limit} }}"
            for way, pattern in ((OUT, leaving), (IN, reaching))
        ]
        return f"SELECT ?p ?other ?way WHERE {{\n{_union(parts)}\n}}"

    def names(self, nodes: Sequence[str]) -> str:
        """Ask for labels of the vocabulary's languages: ``?e ?label``."""
        return (
            f"SELECT DISTINCT ?e ?label WHERE {{ VALUES ?e {{ {' '.join(nodes)} }} "
            f"?e <{self._words.label}> ?label . {self._spoken('?label')} }}"
        )

    def about(self, nodes: Sequence[str], limit: int) -> str:
        """Ask for all that one entity is called: ``?e ?what ?text``; a row without text says that it exists."""
        values = f"VALUES ?e {{ {' '.join(nodes)} }}"
        parts = [
            f"{{ SELECT DISTINCT ?e ({literal(what)} AS ?what) ?text WHERE {{ {values} ?e <{predicate}> ?text . "
            f"{self._spoken('?text')} }} ORDER BY ?e ?text LIMIT {limit} }}"
            for what, predicate in (
                ("label", self._words.label),
                ("alias", self._words.alias),
                ("description", self._words.description),
            )
        ]
        parts.append(f"{{ SELECT ?e ({literal('exists')} AS ?what) WHERE {{ {values} ?e ?any ?thing }} LIMIT 1 }}")
        parts += [
            f"{{ SELECT ({node} AS ?e) ({literal('exists')} AS ?what) WHERE {{ ?thing {predicate} {end} }} LIMIT 1 }}"
            for node in nodes
            for predicate, end in (("?any", node), (node, "?any"))
        ]
        return f"SELECT ?e ?what ?text WHERE {{\n{_union(parts)}\n}}"

    def called(self, spellings: Sequence[str], limit: int) -> str:
        """Ask which entities have one of these literals as label or alias: ``?e ?name ?what``."""
        values = f"VALUES ?name {{ {' '.join(spellings)} }}"
        parts = [
            f"{{ SELECT DISTINCT ?e ?name ({literal(what)} AS ?what) WHERE {{ {values} ?e <{predicate}> ?name . "
            f"FILTER(isIRI(?e) && (STRSTARTS(STR(?e), {self._entity}) || "
            f"STRSTARTS(STR(?e), {literal(self._words.relation_names_prefix)}))) }} LIMIT {limit} }}"
            for what, predicate in (("label", self._words.label), ("alias", self._words.alias))
        ]
        return f"SELECT ?e ?name ?what WHERE {{\n{_union(parts)}\n}}"

    def _states(self, variable: str) -> str:
        return f"FILTER(STRSTARTS(STR({variable}), {self._relation}))"

    def _is_entity(self, variable: str) -> str:
        return f"FILTER(isIRI({variable}) && STRSTARTS(STR({variable}), {self._entity}))"

    def _spoken(self, variable: str) -> str:
        tags = ", ".join(literal(tag.lower()) for tag in self._words.languages)
        return f"FILTER(isLiteral({variable}) && LCASE(LANG({variable})) IN ({tags}))"


def _union(parts: Sequence[str]) -> str:
    return "\nUNION\n".join(parts)
