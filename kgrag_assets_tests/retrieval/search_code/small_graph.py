"""A small graph in memory, which counts what it is asked, and programs run over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.linking import LinkCandidate, folded
from kgrag_assets.retrieval.search_code.interpreter import Outcome, run_program
from kgrag_assets.retrieval.search_code.program_text import code_in, read_program
from kgrag_assets.retrieval.search_code.questions import Findings, GraphQuestions
from kgrag_assets.retrieval.search_code.similarity import WordSimilarity
from kgrag_assets.rows.keys import attribute_id_of
from kgrag_assets.schemas.attribute import Attribute

NAMES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "wd:P569": ("date of birth", ("birthday", "birth date"), "date on which the subject was born"),
    "wd:Q200": ("birthday", (), "anniversary of a birth"),
    "wd:Q205": ("point in time", (), "position of an instance in time"),
    "wd:Q300": ("gender", ("sex",), "range of characteristics"),
    "wd:Q301": ("person", ("human",), "being"),
    "wd:Q400": ("identifier", (), "name that identifies"),
    "wd:P31": ("instance of", (), ""),
    "wd:P279": ("subclass of", (), ""),
    "wd:P1": ("facet of", (), ""),
    "wd:P2": ("mass", (), ""),
}
STATEMENTS: list[tuple[str, str, str | None, str | None]] = [
    ("wd:P569", "wd:P31", "wd:Q205", None),
    ("wd:Q200", "wd:P1", "wd:P569", None),
    ("wd:Q200", "wd:P279", "wd:Q205", None),
    ("wd:Q300", "wd:P1", "wd:Q301", None),
    ("wd:Q301", "wd:P2", None, "62 kilogram"),
]


class SmallGraph:
    """A knowledge base whose questions are counted."""

    name = "small"

    def __init__(self) -> None:
        self.asked = 0

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        self.asked += 1
        wanted = {folded(text) for text in (query, *aliases)} - {""}
        found = []
        for one, (label, others, _about) in NAMES.items():
            if folded(label) in wanted:
                found.append(LinkCandidate(one, label, 1.0, label))
            elif wanted & {folded(other) for other in others}:
                found.append(LinkCandidate(one, label, 0.9, query, "alias"))
        return sorted(found, key=lambda candidate: (-candidate.score, candidate.entity_id))[:k]

    def entity_info(self, entity: str) -> EntityInfo | None:
        self.asked += 1
        if entity not in NAMES:
            return None
        label, aliases, about = NAMES[entity]
        return EntityInfo(entity, "relation" if entity.startswith("wd:P") else "entity", label, aliases, about)

    def entity_triples(self, entity: str, limit: int = 200) -> list[Triple]:
        self.asked += 1
        return [
            Triple(head, by, tail, value, NAMES[head][0], NAMES[by][0], NAMES[tail][0] if tail else value or "")
            for head, by, tail, value in STATEMENTS
            if entity in (head, tail)
        ][:limit]


def run(base: KnowledgeBase, answer: str, *, steps: int = 200, calls: int = 12) -> tuple[Outcome, Findings]:
    """Run the program in a model's answer."""
    questions = GraphQuestions(base, WordSimilarity(), calls)
    outcome = run_program(read_program(code_in(answer)), questions, steps)
    return outcome, questions.findings


def attribute(side: str, table: str, column: str, **changes: Any) -> Attribute:
    """Make an attribute."""
    values: dict[str, Any] = {
        "attribute_id": attribute_id_of(side, table, column),
        "side": side,
        "table_name": table,
        "column_name": column,
        "data_type": "",
        "type_family": "unknown",
        "table_description": "",
        "column_description": "",
    }
    return Attribute(**{**values, **changes})
