"""The question put to a language model about one pair: template, fencing of what others wrote, and its version."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Any

from kgrag_assets.judging.protocol import JudgePair
from kgrag_assets.models.prompt_text import CUT, PromptTemplate, fence_of, fenced, read_template, shown
from kgrag_assets.schemas.attribute import Attribute

TEMPLATE = "pairwise-v1"

NAME_LENGTH = 200
DESCRIPTION_LENGTH = 600
FACT_LENGTH = 400
SAMPLES = 3
SAMPLE_LENGTH = 24
# The reason stands first: a model that writes it first decides after it, not before.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "match": {"type": "boolean"},
        "confidence": {"type": "number"},
        "facts": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["reason", "match", "confidence", "facts"],
    "additionalProperties": False,
}


def prompt_template(name: str = TEMPLATE) -> PromptTemplate:
    """Read a template of this room; its version hashes its text and how values are shown."""
    limits = (NAME_LENGTH, DESCRIPTION_LENGTH, FACT_LENGTH, SAMPLES, SAMPLE_LENGTH, CUT)
    return read_template("kgrag_assets.judging", name, *limits)


def fact_labels(pair: JudgePair) -> dict[str, str]:
    """Return the ids by which the prompt shows the facts (F1, F2, …), each with the fact's own id."""
    return {f"F{number}": fact.fact_id for number, fact in enumerate(pair.facts, start=1)}


def build_messages(pair: JudgePair) -> list[dict[str, str]]:
    """Build the messages that ask whether a pair corresponds.

    The question follows the pairwise prompt of KG-RAG4SM (Ma et al., 2025): two attributes with their
    tables and descriptions, the ranked facts of the knowledge graph, and one binary decision. Names,
    descriptions and facts stand between fences whose name is a hash of them, so no text can hold the fence
    that closes it; sample values are shown by their shape only (``A`` letter, ``9`` digit).

    Args:
        pair: what the judge may look at.

    Returns:
        A system and a user message; equal pairs give equal messages.
    """
    template = prompt_template()
    source, target = _attribute_lines(pair.source), _attribute_lines(pair.target)
    facts = [
        f"{label}: {shown(fact.text, FACT_LENGTH)}" for label, fact in zip(fact_labels(pair), pair.facts, strict=True)
    ]
    fence = fence_of(source, target, facts)
    if facts:
        facts_part = (
            f"Facts from a knowledge graph that were found for this pair:\n<<<{fence} facts\n"
            f"{fenced(fence, facts)}\n{fence} facts>>>"
        )
    else:
        facts_part = (
            "The knowledge graph holds no fact about this pair: decide by the columns alone, and leave facts empty."
        )
    user = Template(template.user).substitute(
        fence=fence, source=fenced(fence, source), target=fenced(fence, target), facts=facts_part
    )
    return [{"role": "system", "content": template.system}, {"role": "user", "content": user}]


def value_shape(value: str) -> str:
    """Return the shape of a sample value: letters become ``A`` or ``a``, digits ``9``, the rest stays.

    The values are somebody's data and do not leave the house; their shape says most of what helps.
    """
    masked = "".join(
        "9" if character.isnumeric() else ("A" if character.isupper() else "a") if character.isalpha() else character
        for character in value
    )
    return shown(masked, SAMPLE_LENGTH)


def _attribute_lines(attribute: Attribute) -> list[str]:
    shapes = list(dict.fromkeys(value_shape(value) for value in attribute.sample_values))
    lines = [
        f"table: {shown(attribute.table_name, NAME_LENGTH)}",
        f"table description: {shown(attribute.table_description, DESCRIPTION_LENGTH) or '(none)'}",
        f"column: {shown(attribute.column_name, NAME_LENGTH)}",
        f"column description: {shown(attribute.column_description, DESCRIPTION_LENGTH) or '(none)'}",
        f"type: {shown(attribute.data_type, NAME_LENGTH) or '(unknown)'}",
    ]
    shapes = [shape for shape in shapes if shape][:SAMPLES]
    if shapes:
        lines.append(f"shapes of some values (A letter, 9 digit): {' | '.join(shapes)}")
    if attribute.is_primary_key:
        lines.append("key: primary key of its table")
    if attribute.references_table:
        column = f".{attribute.references_column}" if attribute.references_column else ""
        lines.append(f"refers to: {shown(attribute.references_table + column, NAME_LENGTH)}")
    return lines
