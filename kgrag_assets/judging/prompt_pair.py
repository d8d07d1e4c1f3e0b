"""The pairwise prompt: one call about one pair, as in KG-RAG4SM (Ma et al., arXiv 2501.08686)."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from kgrag_assets.judging.few_shot import NO_EXAMPLES, Examples
from kgrag_assets.judging.parsing import ParsedAnswer, parse_answer
from kgrag_assets.judging.prompt import (
    Question,
    answer_schema,
    attribute_lines,
    evidence_lines,
    examples_part,
    fields_text,
    labels_of,
    template_of,
)
from kgrag_assets.judging.protocol import JudgePair
from kgrag_assets.models.chat import Message
from kgrag_assets.models.prompt_text import fence_of, fenced
from kgrag_assets.settings import JudgingSettings

TEMPLATE = "pairwise-v2"


class PairwisePrompt:
    """Asks about each pair by itself."""

    def __init__(self, settings: JudgingSettings, examples: Examples = NO_EXAMPLES) -> None:
        self._settings = settings
        self._examples = examples
        self._template = template_of(TEMPLATE, settings)

    @property
    def version(self) -> str:
        """Version of what is asked; see ``PromptForm``."""
        return self._template.version + self._examples.version

    def questions(self, pairs: Sequence[JudgePair]) -> list[Question]:
        """Make a call for each pair."""
        return [self._question(pair) for pair in pairs]

    def read(self, question: Question, text: str, call_status: str) -> list[ParsedAnswer]:
        """Read the answer about the pair."""
        return [parse_answer(text, list(question.labels[0]), call_status)]

    def _question(self, pair: JudgePair) -> Question:
        source = attribute_lines(pair.source, pair.source_tables, self._settings, table=True)
        target = attribute_lines(pair.target, pair.target_tables, self._settings, table=True)
        labels = labels_of(pair)
        facts = evidence_lines(labels, (*pair.facts, *pair.values))
        fence = fence_of(source, target, facts, list(self._examples.lines))
        if facts:
            known = "" if pair.facts else " The knowledge graph holds no fact about this pair."
            facts_part = (
                "What is known about this pair, facts of a knowledge graph (F) and what sample values say (V):"
                f"{known}\n<<<{fence} facts\n{fenced(fence, facts)}\n{fence} facts>>>"
            )
        else:
            facts_part = (
                "The knowledge graph holds no fact about this pair: decide by the columns alone, and leave facts empty."
            )
        gated = self._settings.gate and bool(pair.facts)
        user = Template(self._template.user).substitute(
            examples=examples_part(self._examples, fence),
            fence=fence,
            source=fenced(fence, source),
            target=fenced(fence, target),
            facts=facts_part,
        )
        system = Template(self._template.system).substitute(fields=fields_text(gated=gated))
        return Question(
            pairs=(pair,),
            messages=(Message("system", system), Message("user", user)),
            json_schema=answer_schema(gated=gated),
            max_tokens=self._settings.max_tokens,
            labels=(labels,),
        )
