"""A graph behind an endpoint as a ``KnowledgeBase``."""

from __future__ import annotations

from collections.abc import Sequence

from kgrag_assets.knowledge.base import DEFAULT_TRIPLES, EntityInfo, Triple
from kgrag_assets.knowledge.linking import (
    EXACT_ALIAS,
    EXACT_LABEL,
    FOLDED_LABEL,
    MIN_PHRASE,
    LinkCandidate,
    MatchKind,
    folded,
)
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sparql.answers import Row, value
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.names import labels_of, rank_of
from kgrag_assets.knowledge.sparql.search import TIME_BUDGET_S
from kgrag_assets.knowledge.sparql.templates import OUT, Templates
from kgrag_assets.knowledge.sparql.terms import is_writable, literal
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary

# Entities of one name that are looked at: there are thousands called John Smith.
MAX_NAMESAKES = 200
# Names of one entity, of each sort, that are fetched.
MAX_NAMES = 200
# What a match of one of the query's other names is worth beside one of the query itself.
OTHER_NAME = 0.9


class SparqlKnowledgeBase:
    """Answers the three questions of ``KnowledgeBase`` through an endpoint.

    Names are found by exact spelling: as given, in lower case, with a capital first letter, with capitals at each
    word, and in capitals, in the vocabulary's languages. An endpoint of Wikidata's size cannot compare all names
    without regard to case within its time limit, so other spellings (``hba1C``) are not found, and abbreviations
    only where the graph has them as an alias.
    """

    def __init__(
        self,
        client: SparqlClient,
        vocabulary: Vocabulary | None = None,
        name: str | None = None,
        time_budget_s: float = TIME_BUDGET_S,
    ) -> None:
        """Take the endpoint.

        Args:
            client: who is asked.
            vocabulary: how the graph writes ids and names; None for Wikidata's.
            name: what people call this graph; None for the endpoint's address.
            time_budget_s: seconds that one question may take.
        """
        self._client = client
        self._words = vocabulary or Vocabulary()
        self._templates = Templates(self._words)
        self._name = name or client.endpoint.place
        self._time_budget_s = time_budget_s

    @property
    def name(self) -> str:
        """What people call this graph."""
        return self._name

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        """Return at most ``k`` entities that a name, or one of its other names, may mean; best first.

        Among equals relations come before entities, as in ``knowledge.linking``. Names of fewer than three
        letters or digits are linked to nothing.

        Raises:
            SparqlTimeoutError: the endpoint took too long; nothing is said about what was found.
            SparqlError: there is no whole answer.
        """
        asked = [(text.strip(), share) for text, share in ((query, 1.0), *((alias, OTHER_NAME) for alias in aliases))]
        asked = [(text, share) for text, share in asked if is_writable(text) and len(folded(text)) >= MIN_PHRASE]
        spellings = [
            literal(spelling, language)
            for text, _share in asked
            for spelling in spellings_of(text)
            for language in self._words.languages
        ]
        if not spellings or k < 1:
            return []
        until = self._client.deadline(self._time_budget_s)
        found = self._client.select(
            self._templates.called(list(dict.fromkeys(spellings)), max(k, MAX_NAMESAKES)), until
        ).rows
        best: dict[str, tuple[float, str, MatchKind]] = {}
        for row in found:
            entity_id = self._words.named_id(value(row, "e"))
            matched = value(row, "name")
            if entity_id is None:
                continue
            score = max((_worth(text, matched, value(row, "what")) * share for text, share in asked), default=0.0)
            if score > best.get(entity_id, (0.0,))[0]:
                best[entity_id] = (score, matched, _kind(query, matched, value(row, "what")))
        order = sorted(best, key=lambda one: (-best[one][0], not is_relation_id(one.partition(":")[2]), len(one), one))[
            :k
        ]
        labels = labels_of(self._client, self._words, order, until)
        return [LinkCandidate(one, labels.get(one, best[one][1]), *best[one]) for one in order]

    def entity_info(self, entity: str) -> EntityInfo | None:
        """Return what an entity is called, or None where the graph has no statement about the id.

        Raises:
            SparqlTimeoutError: the endpoint took too long.
            SparqlError: there is no whole answer.
        """
        local = self._words.local_of(entity)
        if local is None:
            return None
        rows = self._client.select(
            self._templates.about(self._words.named(local), MAX_NAMES), self._client.deadline(self._time_budget_s)
        ).rows
        if not rows:
            return None
        texts: dict[str, list[tuple[int, str]]] = {"label": [], "alias": [], "description": []}
        for row in rows:
            what = value(row, "what")
            if what in texts:
                texts[what].append((rank_of(row, "text", self._words), value(row, "text")))
        labels, descriptions = sorted(texts["label"]), sorted(texts["description"])
        label = labels[0][1] if labels else local
        # An alias, and a label of another of the languages, are other names.
        others = dict.fromkeys(text for _rank, text in [*labels[1:], *sorted(texts["alias"])])
        kinds = {self._words.kind_of(value(row, "e")) for row in rows}
        return EntityInfo(
            entity_id=entity,
            kind="relation" if kinds == {"relation"} else "entity",
            label=label,
            aliases=tuple(text for text in others if text != label),
            description=descriptions[0][1] if descriptions else "",
        )

    def entity_triples(self, entity: str, limit: int = DEFAULT_TRIPLES) -> list[Triple]:
        """Return at most ``limit`` statements with the entity as head or tail, those that leave it first.

        Of more than ``limit`` statements in one direction the endpoint chooses which are seen.

        Raises:
            SparqlTimeoutError: the endpoint took too long.
            SparqlError: there is no whole answer.
        """
        local = self._words.local_of(entity)
        if local is None or limit < 1:
            return []
        until = self._client.deadline(self._time_budget_s)
        rows = self._client.select(self._templates.statements(self._words.named(local), limit), until).rows
        parts = [found for row in rows if (found := self._statement(entity, row)) is not None]
        # Leaving ones first.
        parts = sorted(set(parts), key=lambda part: (part[0] != entity, part[1], part[0], part[2] or "", part[3] or ""))
        parts = parts[:limit]
        ids = {one for head, relation, tail, _value in parts for one in (head, relation, tail) if one is not None}
        labels = labels_of(self._client, self._words, ids, until)

        def label(one: str) -> str:
            return labels.get(one, one.partition(":")[2])

        return [
            Triple(head, relation, tail, text, label(head), label(relation), label(tail) if tail else text or "")
            for head, relation, tail, text in parts
        ]

    def _statement(self, entity: str, row: Row) -> tuple[str, str, str | None, str | None] | None:
        """Return head, relation, tail and literal of a row; None for a value that nobody knows."""
        relation = self._words.relation_id(value(row, "p"))
        other = row.get("other")
        if relation is None or other is None or other.type == "bnode":
            return None
        found = self._words.entity_id(other.value) if other.is_iri else None
        if value(row, "way") != OUT:
            return (found, relation, entity, None) if found is not None else None
        if found is not None:
            return entity, relation, found, None
        if other.is_iri and self._words.is_unknown_value(other.value):
            return None
        return entity, relation, None, other.value


def spellings_of(text: str) -> list[str]:
    """Return the spellings that a name is looked up by: as given, lower, Sentence, Each Word, UPPER."""
    words = text.split()
    lower = [word.lower() for word in words]
    capital = [word[:1].upper() + word[1:] for word in lower]
    sentence = " ".join([*capital[:1], *lower[1:]])
    return list(dict.fromkeys([text, " ".join(lower), sentence, " ".join(capital), " ".join(words).upper()]))


def _kind(query: str, matched: str, what: str) -> MatchKind:
    if what != "label":
        return "alias"
    return "exact" if matched == query else "folded"


def _worth(asked: str, matched: str, what: str) -> float:
    if folded(asked) != folded(matched):
        return 0.0
    if what == "label":
        return EXACT_LABEL if asked == matched else FOLDED_LABEL
    return EXACT_ALIAS
