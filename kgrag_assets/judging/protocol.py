"""What a judge is given, what it answers, and what every judge can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.schemas.attribute import Attribute


@dataclass(frozen=True)
class Evidence:
    """One fact of a pair's context, as a line of text with an id that can be cited."""

    fact_id: str
    text: str
    kind: str
    method: str
    score: float


@dataclass(frozen=True)
class JudgePair:
    """One candidate pair with everything a judge may look at.

    ``signals`` holds only what the two attributes alone decide (cosine_full, cosine_name,
    name_similarity, type_affinity, table_similarity): a signal that depends on the rest of the schema
    would re-judge every pair after one edit.
    """

    task: str
    pair_id: str
    source: Attribute
    target: Attribute
    signals: Mapping[str, float]
    facts: tuple[Evidence, ...]
    context_key: str


@dataclass(frozen=True)
class Judgment:
    """A judge's word on one pair. ``answer`` and ``score`` are None where no answer could be read."""

    pair_id: str
    parse_status: str
    answer: bool | None
    score: float | None
    reason: str
    cited_facts: tuple[str, ...] = ()
    request_hash: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = 0.0


class Judge(Protocol):
    """A judge of pairs."""

    @property
    def name(self) -> str:
        """offline, openai or ollama."""

    @property
    def model(self) -> str:
        """The model, or the judge's own version where it has none."""

    @property
    def prompt_version(self) -> str:
        """Version of what is asked."""

    def key(self, pair: JudgePair) -> str:
        """Hash everything that decides the judgment of this pair; equal keys mean that it stands."""

    def judge(self, pairs: Sequence[JudgePair], on_done: Callable[[Judgment], None] | None = None) -> list[Judgment]:
        """Judge pairs, in order; ``on_done`` is called after each, from the calling thread."""
