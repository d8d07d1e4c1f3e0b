"""What the prompt forms share: the lines about an attribute, the fields of an answer, and their schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kgrag_assets.judging.few_shot import Examples
from kgrag_assets.judging.parsing import ParsedAnswer
from kgrag_assets.judging.protocol import Evidence, JudgePair
from kgrag_assets.judging.value_lines import VALUES_VERSION, value_lines
from kgrag_assets.models.chat import Message
from kgrag_assets.models.prompt_text import CUT, PromptTemplate, fenced, read_template, shown
from kgrag_assets.models.tokens import TOKENIZER, cut_to_tokens
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import JudgingSettings

NAME_LENGTH = 200
# Before a text is cut by tokens: somebody's megabyte need not be tokenised.
LONGEST_TEXT = 4000
FACT_LENGTH = 400
MOST_TABLES = 5
# What an answer about one more candidate takes, in tokens.
TOKENS_PER_ANSWER = 120

# The reason stands before the verdict: a model that writes it first decides after it. Its own answer stands before
# all that speaks of the facts.
_GATE_FIELDS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "own_match": ({"type": "boolean"}, "true or false by the columns alone, as if no fact were shown"),
    "own_confidence": ({"type": "number"}, "a number from 0 to 1 for how sure you are of own_match"),
    "relevance": (
        {"type": "integer"},
        "a whole number from 0 to 10 for how much the facts bear on the question; 0 where none is shown",
    ),
}
_FIELDS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "reason": ({"type": "string"}, "one short sentence"),
    "match": ({"type": "boolean"}, "true or false"),
    "confidence": ({"type": "number"}, "a number from 0 to 1 for how sure you are of the value of match"),
    "facts": (
        {"type": "array", "items": {"type": "string"}},
        'list of the ids of the facts that decided, such as ["F1"], or []',
    ),
}


@dataclass(frozen=True)
class Question:
    """One call: the pairs that it asks about, with the ids by which it shows their facts."""

    pairs: tuple[JudgePair, ...]
    messages: tuple[Message, ...]
    json_schema: Mapping[str, Any]
    max_tokens: int
    # For each pair, the ids shown (F1, V1) with the facts' own ids.
    labels: tuple[Mapping[str, str], ...]


class PromptForm(Protocol):
    """A way of asking about pairs."""

    @property
    def version(self) -> str:
        """The template's name with a hash of its text, of how values are shown, and of the examples."""

    def questions(self, pairs: Sequence[JudgePair]) -> list[Question]:
        """Split pairs into calls; each pair is in one."""

    def read(self, question: Question, text: str, call_status: str) -> list[ParsedAnswer]:
        """Read the text of an answer: one for each pair of the question, in order. Never raises."""


def template_of(name: str, settings: JudgingSettings) -> PromptTemplate:
    """Read a template of this room; its version hashes its text and how values are shown."""
    limits = (NAME_LENGTH, LONGEST_TEXT, FACT_LENGTH, MOST_TABLES, CUT, TOKENIZER, VALUES_VERSION)
    return read_template(
        "kgrag_assets.judging", name, *limits, settings.description_tokens, settings.values, str(settings.gate)
    )


def answer_fields(*, gated: bool) -> dict[str, tuple[Mapping[str, Any], str]]:
    """Return the fields of an answer about one pair, in order, each with its schema and what to write."""
    return {**(_GATE_FIELDS if gated else {}), **_FIELDS}


def fields_text(*, gated: bool) -> str:
    """Write the fields of an answer for a prompt."""
    return ", ".join(f'"{name}": {what}' for name, (_, what) in answer_fields(gated=gated).items())


def object_schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def answer_schema(*, gated: bool) -> dict[str, Any]:
    """Return the JSON schema of an answer about one pair."""
    return object_schema({name: schema for name, (schema, _) in answer_fields(gated=gated).items()})


def labels_of(pair: JudgePair, first_fact: int = 1, first_value: int = 1) -> dict[str, str]:
    """Name the facts of a pair F1, F2 and so on, and what its values say V1, V2, each with the evidence's own id."""
    facts = {f"F{number}": fact.fact_id for number, fact in enumerate(pair.facts, start=first_fact)}
    return facts | {f"V{number}": fact.fact_id for number, fact in enumerate(pair.values, start=first_value)}


def evidence_lines(labels: Iterable[str], evidence: Iterable[Evidence]) -> list[str]:
    """Write evidence as lines that begin with the ids."""
    return [f"{label}: {shown(fact.text, FACT_LENGTH)}" for label, fact in zip(labels, evidence, strict=True)]


def attribute_lines(
    attribute: Attribute, tables: Sequence[str], settings: JudgingSettings, *, table: bool
) -> list[str]:
    """Write what a prompt says of an attribute.

    Args:
        attribute: the attribute.
        tables: other tables in which it stands with the same meaning.
        settings: how much is shown.
        table: whether the description of its table is written, too.
    """
    lines = [f"table: {shown(attribute.table_name, NAME_LENGTH)}"]
    if table:
        lines.append(f"table description: {described(attribute.table_description, settings) or '(none)'}")
    lines += [
        f"column: {shown(attribute.column_name, NAME_LENGTH)}",
        f"column description: {described(attribute.column_description, settings) or '(none)'}",
        f"type: {shown(attribute.data_type, NAME_LENGTH) or '(unknown)'}",
        *value_lines(attribute, settings.values),
    ]
    if attribute.is_primary_key:
        lines.append("key: primary key of its table")
    if attribute.references_table:
        column = f".{attribute.references_column}" if attribute.references_column else ""
        lines.append(f"refers to: {shown(attribute.references_table + column, NAME_LENGTH)}")
    if tables:
        more = f" and {len(tables) - MOST_TABLES} more" if len(tables) > MOST_TABLES else ""
        names = ", ".join(shown(name, NAME_LENGTH) for name in tables[:MOST_TABLES])
        lines.append(f"the same column stands in: {names}{more}")
    return lines


def described(text: str, settings: JudgingSettings) -> str:
    """Return a description as one line, cut by tokens, visibly."""
    return cut_to_tokens(shown(text, LONGEST_TEXT), settings.description_tokens)


def examples_part(examples: Examples, fence: str) -> str:
    """Write the examples as a part of a prompt; empty text without any."""
    if not examples.lines:
        return ""
    return (
        "Examples that people decided (source | target | verdict):\n"
        f"<<<{fence} examples\n{fenced(fence, examples.lines)}\n{fence} examples>>>\n\n"
    )
