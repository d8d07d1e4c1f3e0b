"""The three questions that a search program asks of a graph, and the collection of what the graph answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.questions import (
    TRIED_ENTITIES,
    RelationshipAnswer,
    Similarity,
    ValueAnswer,
    find_entity_or_value,
    find_relationship,
)
from kgrag_assets.knowledge.sparql.errors import QueryRefusedError, SparqlTimeoutError
from kgrag_assets.models.prompt_text import shown
from kgrag_assets.retrieval.search_code.errors import OverBudgetError, ProgramError
from kgrag_assets.retrieval.search_code.values import Record, Value, listing, record, text

# Answers of one question that are kept: the tails of a relation, the statements between two entities.
MAX_ANSWERS = 50
# Other names of an entity that a program sees.
MAX_ALIASES = 20
# Characters of a name that is looked up.
MAX_NAME = 200

# The fields of a result that say what it is of, the surest first.
_NAMING = ("id", "label")

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "entity_info": ("entity",),
    "find_entity_or_value": ("entity", "relation"),
    "find_relationship": ("first", "second"),
}


@dataclass(frozen=True)
class FoundEntity:
    """An entity that a program has asked about; ``link`` is how well its name matches what was asked for, 0..1.

    It is 0 for an entity that was asked for by its id: a model may have the id out of the graph or out of thin air.
    """

    info: EntityInfo
    link: float


@dataclass(frozen=True)
class Findings:
    """What the graph answered to one program.

    ``unknown`` are the names that the program wrote and the graph does not know; ``left_out`` counts answers beyond
    the first of a question that were not kept.
    """

    entities: tuple[FoundEntity, ...] = ()
    statements: tuple[Triple, ...] = ()
    unknown: tuple[str, ...] = ()
    calls: int = 0
    left_out: int = 0


NOTHING = Findings()


@dataclass
class _Collected:
    entities: dict[str, FoundEntity] = field(default_factory=dict)
    statements: dict[Triple, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    # Labels that the graph has told the program: what it asks with them is no word of the model's own.
    told: set[str] = field(default_factory=set)
    calls: int = 0
    left_out: int = 0


class GraphQuestions:
    """Asks a graph for a program, at most ``max_calls`` times; what was answered is in ``findings``.

    A question about nothing (a result that holds nothing, an empty text) is not asked, and its result holds nothing.
    """

    parameters: Mapping[str, tuple[str, ...]] = PARAMETERS

    def __init__(self, base: KnowledgeBase, similarity: Similarity, max_calls: int) -> None:
        """Take the graph, how like the name of a relation is to what was asked for, and the most questions."""
        self._base = base
        self._similarity = similarity
        self._max_calls = max_calls
        self._found = _Collected()

    @property
    def findings(self) -> Findings:
        """What was found so far."""
        found = self._found
        return Findings(
            tuple(found.entities.values()),
            tuple(found.statements),
            tuple(found.unknown),
            found.calls,
            found.left_out,
        )

    def call(self, name: str, arguments: Sequence[Value], line: int) -> Value:
        """Ask a question.

        Raises:
            ProgramError: an argument is no name, or a remote graph does not take it.
            OverBudgetError: no more may be asked, or a remote graph took too long.
        """
        given = [_name_in(argument, name, line) for argument in arguments]
        if all(given):
            if self._found.calls >= self._max_calls:
                raise OverBudgetError(line, f"stopped after {self._max_calls} questions")
            self._found.calls += 1
        try:
            if name == "entity_info":
                return self._info_of(given[0])
            return self._value_of(*given) if name == "find_entity_or_value" else self._relationship_of(*given)
        except SparqlTimeoutError as error:
            raise OverBudgetError(line, f"the graph took too long: {shown(str(error), 200)}") from error
        except QueryRefusedError as error:
            raise ProgramError(line, f"the graph cannot be asked so: {shown(str(error), 200)}") from error

    def _info_of(self, entity: str) -> Value:
        links = self._links(entity)
        info = self._base.entity_info(next(iter(links))) if links else None
        if info is None:
            self._unknown(entity)
        else:
            self._keep(info, links)
        return self._told(info)

    def _value_of(self, entity: str, relation: str) -> Value:
        answer = ValueAnswer("nothing", None, None, "", 0.0, (), "")
        if entity and relation:
            links = self._links(entity)
            answer = find_entity_or_value(self._base, entity, relation, self._similarity)
            if answer.entity is None:
                self._unknown(entity)
            else:
                self._keep(answer.entity, links)
        return self._values(answer)

    def _values(self, answer: ValueAnswer) -> Value:
        kept = answer.values[:MAX_ANSWERS]
        self._found.left_out += len(answer.values) - len(kept)
        values: list[Value] = []
        for one in kept:
            if answer.entity is not None and answer.relation is not None:
                self._found.statements[
                    Triple(
                        answer.entity.entity_id,
                        answer.relation,
                        one.tail,
                        one.value,
                        answer.entity.label,
                        answer.relation_label,
                        one.label,
                    )
                ] = None
            values.append(record("a value", {"id": one.tail or "", "label": self._label(one.label)}, found=True))
        fields: dict[str, Value] = {
            "entity": self._told(answer.entity),
            "relation": self._label(answer.relation_label),
            "values": listing(values),
            "description": text(answer.description),
        }
        return record("an answer", fields, found=bool(values))

    def _relationship_of(self, first: str, second: str) -> Value:
        answer = RelationshipAnswer(None, None, ())
        if first and second:
            answer = find_relationship(self._base, first, second)
            for name, info in ((first, answer.first), (second, answer.second)):
                if info is not None:
                    self._keep(info, self._links(name))
                elif not answer.relationships:
                    self._unknown(name)
        kept = answer.relationships[:MAX_ANSWERS]
        self._found.left_out += len(answer.relationships) - len(kept)
        statements: list[Value] = []
        for one in kept:
            self._found.statements[one.triple] = None
            statements.append(self._statement(one.triple))
        fields: dict[str, Value] = {
            "first": self._told(answer.first),
            "second": self._told(answer.second),
            "statements": listing(statements),
        }
        return record("an answer", fields, found=bool(kept))

    def _statement(self, triple: Triple) -> Record:
        return record(
            "a statement",
            {
                "head": self._label(triple.head_label),
                "head_id": triple.head,
                "relation": self._label(triple.relation_label),
                "tail": self._label(triple.tail_label),
                "tail_id": triple.tail or "",
            },
            found=True,
        )

    def _links(self, entity: str) -> dict[str, float]:
        """Return the entities that a name may mean, best first, with how well they match; by id, that one with 0.

        As ``knowledge.questions`` has it: what is written like an id and known is that one only.
        """
        if not entity:
            return {}
        namespace, colon, local = entity.partition(":")
        if colon and namespace.isalnum() and local and " " not in entity and self._base.entity_info(entity) is not None:
            return {entity: 0.0}
        return {one.entity_id: one.score for one in self._base.entity_linking(entity, k=TRIED_ENTITIES)}

    def _keep(self, info: EntityInfo, links: dict[str, float]) -> None:
        link = min(max(links.get(info.entity_id, 0.0), 0.0), 1.0)
        known = self._found.entities.get(info.entity_id)
        if known is None or known.link < link:
            self._found.entities[info.entity_id] = FoundEntity(info, link)

    def _unknown(self, name: str) -> None:
        if name and name not in self._found.told:
            self._found.unknown[name] = None

    def _label(self, label: str) -> str:
        known = text(label)
        self._found.told.add(known[:MAX_NAME])
        return known

    def _told(self, info: EntityInfo | None) -> Record:
        """Return an entity as a program sees it; None as a record that holds nothing."""
        aliases = info.aliases[:MAX_ALIASES] if info is not None else ()
        fields: dict[str, Value] = {
            "id": info.entity_id if info is not None else "",
            "label": self._label(info.label) if info is not None else "",
            "aliases": listing(self._label(alias) for alias in aliases),
            "description": text(info.description) if info is not None else "",
        }
        return record("an entity", fields, found=info is not None)


def _name_in(argument: Value, function: str, line: int) -> str:
    """Return the id or name in an argument: a text, or a result with an id or a label; empty for nothing."""
    if isinstance(argument, Record):
        argument = next((argument.get(name) for name in _NAMING if name in argument.names and argument.get(name)), "")
    if argument is None:
        return ""
    if not isinstance(argument, str):
        raise ProgramError(line, f"{function} takes names or ids")
    return argument[:MAX_NAME].strip()
