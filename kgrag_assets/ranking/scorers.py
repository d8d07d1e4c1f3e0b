"""The methods that give a pair's facts the scores by which they are ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.pair_scorer import CrossEncoderScorer, PairScorer
from kgrag_assets.ranking.facts import RankableFact
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.attribute_text import TEXT_VERSION, attribute_text
from kgrag_assets.settings import RankingSettings

# Scores are kept with this many decimals: they are part of a context's key, and the last bits of a cosine
# differ between machines.
SCORE_DECIMALS = 3


@dataclass(frozen=True)
class PairFacts:
    """The facts of one pair, with the two attributes."""

    source: Attribute
    target: Attribute
    facts: tuple[RankableFact, ...]


class FactScorer(Protocol):
    """Gives each fact of each pair a score in 0..1."""

    @property
    def version(self) -> str:
        """What decides the scores besides pair and facts: method and model."""

    @property
    def ordered(self) -> bool:
        """Whether facts are ordered by score, and the weak ones left out; False keeps them as they were found."""

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        """Return the facts of each pair with their scores, in the order given."""


class FrequencyScorer:
    """A triple keeps the score it was found with; a path's is weighed by how often its relations stand in paths.

    After the path ranking of KG-RAG4SM (Ma et al., "Knowledge Graph-based Retrieval-Augmented Generation for Schema
    Matching", arXiv 2501.08686): a relation that stands in many of the paths found for a pair is what the two have to
    do with each other, and the sum over a path is divided by its length, so that long paths do not win by having more
    relations.
    """

    version = "frequency-1"
    ordered = True

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        """Score the facts of each pair; see ``FactScorer``."""
        return [_weigh_paths(pair.facts) for pair in pairs]


class FoundOrder:
    """No ranking: the facts as retrieval found them, for comparison."""

    version = "none-1"
    ordered = False

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        """Keep the facts of each pair; see ``FactScorer``."""
        return [[_rounded(fact, fact.score) for fact in pair.facts] for pair in pairs]


class CosineScorer:
    """Mean of a fact's cosines with the two attributes, by the embedder; each distinct text is embedded once."""

    ordered = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def version(self) -> str:
        """Method and model."""
        return f"cosine-1/{TEXT_VERSION}/{self._embedder.model_id}"

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        """Score the facts of each pair; see ``FactScorer``."""
        places: dict[str, int] = {}
        for pair in pairs:
            if pair.facts:
                for text in (_described(pair.source), _described(pair.target), *(fact.text for fact in pair.facts)):
                    places.setdefault(text, len(places))
        vectors = self._embedder.embed(list(places))
        scored = []
        for pair in pairs:
            ends = [vectors[places[_described(end)]] for end in (pair.source, pair.target)] if pair.facts else []
            scored.append(
                [
                    _rounded(fact, max(0.0, float(np.mean([vectors[places[fact.text]] @ end for end in ends]))))
                    for fact in pair.facts
                ]
            )
        return scored


class CrossEncoderRanking:
    """A cross-encoder's score of the question about a pair with each fact; equal questions with facts once."""

    ordered = True

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer

    @property
    def version(self) -> str:
        """Method and model."""
        return f"cross-encoder-1/{TEXT_VERSION}/{self._scorer.model_id}"

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        """Score the facts of each pair; see ``FactScorer``."""
        asked = [(question_of(pair.source, pair.target), fact.text) for pair in pairs for fact in pair.facts]
        distinct = list(dict.fromkeys(asked))
        known = dict(zip(distinct, self._scorer.score(distinct).tolist(), strict=True))
        return [
            [_rounded(fact, known[question_of(pair.source, pair.target), fact.text]) for fact in pair.facts]
            for pair in pairs
        ]


def question_of(source: Attribute, target: Attribute) -> str:
    """Write the question about a pair that a fact should help to answer."""
    return f"Is {_described(source)} the same as {_described(target)}?"


def make_scorer(settings: RankingSettings, embedder: Embedder) -> FactScorer:
    """Make the scorer that the settings name; no model is loaded yet.

    Args:
        settings: method and model.
        embedder: for the cosine method.
    """
    makers: Mapping[str, Callable[[], FactScorer]] = {
        "frequency": FrequencyScorer,
        "cosine": lambda: CosineScorer(embedder),
        "cross_encoder": lambda: CrossEncoderRanking(CrossEncoderScorer(settings.cross_encoder)),
        "none": FoundOrder,
    }
    return makers[settings.method]()


def _described(attribute: Attribute) -> str:
    return attribute_text(attribute, "full")


def _rounded(fact: RankableFact, score: float) -> RankableFact:
    return replace(fact, score=round(score, SCORE_DECIMALS))


def _weigh_paths(facts: Sequence[RankableFact]) -> list[RankableFact]:
    paths = [fact for fact in facts if fact.kind == "path"]
    # In how many paths a relation stands, not how often: one long walk must not vote for itself.
    standing = Counter(relation for path in paths for relation in set(path.relations))
    weighed: list[RankableFact] = []
    for fact in facts:
        score = fact.score
        if fact.kind == "path" and fact.relations:
            frequency = sum(standing[relation] for relation in fact.relations) / (len(fact.relations) * len(paths))
            score *= 0.5 + 0.5 * frequency
        weighed.append(_rounded(fact, score))
    return weighed
