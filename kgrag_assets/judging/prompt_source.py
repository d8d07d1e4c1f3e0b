"""The prompt by source attribute: one call about a source attribute with all its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from kgrag_assets.judging.few_shot import NO_EXAMPLES, Examples
from kgrag_assets.judging.parsing import ParsedAnswer
from kgrag_assets.judging.parsing_lists import parse_answers
from kgrag_assets.judging.prompt import (
    NAME_LENGTH,
    TOKENS_PER_ANSWER,
    Question,
    answer_fields,
    attribute_lines,
    described,
    evidence_lines,
    examples_part,
    fields_text,
    labels_of,
    object_schema,
    template_of,
)
from kgrag_assets.judging.protocol import JudgePair
from kgrag_assets.models.chat import Message
from kgrag_assets.models.prompt_text import fence_of, fenced, shown
from kgrag_assets.settings import JudgingSettings

TEMPLATE = "by-source-v1"


class BySourcePrompt:
    """Asks about a source attribute with its candidates at once.

    Candidates stand in the order of their pairs' ids, which are hashes: their place says nothing about them, and a
    changed rank in blocking changes no prompt. More than ``candidates_per_call`` are spread evenly over several calls.
    """

    def __init__(self, settings: JudgingSettings, examples: Examples = NO_EXAMPLES) -> None:
        self._settings = settings
        self._examples = examples
        self._template = template_of(TEMPLATE, settings)

    @property
    def version(self) -> str:
        """Version of what is asked; see ``PromptForm``."""
        return self._template.version + self._examples.version

    def questions(self, pairs: Sequence[JudgePair]) -> list[Question]:
        """Make the calls: for each source attribute one, or as many as its candidates need."""
        by_source: dict[str, list[JudgePair]] = {}
        for pair in pairs:
            by_source.setdefault(pair.source.attribute_id, []).append(pair)
        questions = []
        for mine in by_source.values():
            ordered = sorted(mine, key=lambda pair: pair.pair_id)
            calls = -(-len(ordered) // self._settings.candidates_per_call)
            questions += [self._question(tuple(ordered[start::calls])) for start in range(calls)]
        return questions

    def read(self, question: Question, text: str, call_status: str) -> list[ParsedAnswer]:
        """Read the answers; a candidate that the text leaves out has none."""
        return parse_answers(text, [list(labels) for labels in question.labels], call_status)

    def _question(self, pairs: tuple[JudgePair, ...]) -> Question:
        settings = self._settings
        source = attribute_lines(pairs[0].source, pairs[0].source_tables, settings, table=True)
        labels: list[Mapping[str, str]] = []
        facts = values = 1
        for pair in pairs:
            # Numbered through the call: "F3" means one fact, whichever candidate the model speaks of.
            labels.append(labels_of(pair, facts, values))
            facts, values = facts + len(pair.facts), values + len(pair.values)
        candidates = _candidate_lines(pairs, labels, settings)
        fence = fence_of(source, candidates, list(self._examples.lines))
        gated = settings.gate and any(pair.facts for pair in pairs)
        user = Template(self._template.user).substitute(
            examples=examples_part(self._examples, fence),
            fence=fence,
            source=fenced(fence, source),
            candidates=fenced(fence, candidates),
            count=len(pairs),
        )
        system = Template(self._template.system).substitute(fields=fields_text(gated=gated))
        entry = {"candidate": {"type": "string"}} | {
            name: dict(schema) for name, (schema, _) in answer_fields(gated=gated).items()
        }
        return Question(
            pairs=pairs,
            messages=(Message("system", system), Message("user", user)),
            json_schema=object_schema({"answers": {"type": "array", "items": object_schema(entry)}}),
            max_tokens=settings.max_tokens + TOKENS_PER_ANSWER * (len(pairs) - 1),
            labels=tuple(labels),
        )


def _candidate_lines(
    pairs: Sequence[JudgePair], labels: Sequence[Mapping[str, str]], settings: JudgingSettings
) -> list[str]:
    tables = dict.fromkeys((pair.target.table_name, pair.target.table_description) for pair in pairs)
    # A table is described once, however many candidates it has.
    lines = [
        f"table {shown(name, NAME_LENGTH)}: {described(description, settings)}"
        for name, description in tables
        if description.strip()
    ]
    for number, (pair, mine) in enumerate(zip(pairs, labels, strict=True), start=1):
        lines.append(f"C{number}")
        lines += attribute_lines(pair.target, pair.target_tables, settings, table=False)
        lines += evidence_lines(mine, (*pair.facts, *pair.values))
    return lines
