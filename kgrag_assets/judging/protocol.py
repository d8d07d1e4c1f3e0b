"""What a judge is given, what it answers, and what every judge can do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    would re-judge every pair after one edit. ``facts`` are the ranked facts of the graph; ``values`` is what the
    sample values say (kind ``values``), computed here, never a value itself. ``source_tables`` and ``target_tables``
    are the other tables in which an attribute of the same meaning stands, where blocking grouped them.
    """

    task: str
    pair_id: str
    source: Attribute
    target: Attribute
    signals: Mapping[str, float]
    facts: tuple[Evidence, ...]
    context_key: str
    values: tuple[Evidence, ...] = ()
    source_tables: tuple[str, ...] = ()
    target_tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgment:
    """A judge's word on one pair. ``answer`` and ``score`` are None where no answer could be read.

    The fields are the columns of ``llm_judgments``, which says what they mean.
    """

    pair_id: str
    parse_status: str
    answer: bool | None
    score: float | None
    reason: str
    cited_facts: tuple[str, ...] = ()
    unknown_citations: tuple[str, ...] = ()
    relevance: int | None = None
    gate: str = "off"
    own_answer: bool | None = None
    own_score: float | None = None
    conflict: bool | None = None
    votes: int = 1
    votes_for: int = 0
    second_answer: bool | None = None
    second_score: float | None = None
    disagreement: bool | None = None
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

    def keys(self, pairs: Sequence[JudgePair]) -> list[str]:
        """Hash everything that decides the judgment of each of a task's pairs; equal keys mean that it stands.

        A judge that asks about several pairs in one call has the whole call in each of their keys.
        """

    def judge(
        self,
        pairs: Sequence[JudgePair],
        wanted: Collection[str] | None = None,
        on_done: Callable[[Judgment], None] | None = None,
    ) -> list[Judgment]:
        """Judge the pairs of a task whose ``pair_id`` is wanted (None for all), in their order.

        The others are given because a call may ask about several pairs. ``on_done`` is called after each judgment,
        from the calling thread.

        Raises:
            ModelUnavailableError: the judge's model cannot be asked at all, or a budget is spent.
        """
