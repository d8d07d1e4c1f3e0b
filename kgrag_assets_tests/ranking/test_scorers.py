"""The scores of facts by cosine, by a cross-encoder made here, and in the order found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.models.model_folder import find_model
from kgrag_assets.models.pair_scorer import CrossEncoderScorer
from kgrag_assets.ranking.facts import RankableFact
from kgrag_assets.ranking.rank import rank_facts
from kgrag_assets.ranking.scorers import CosineScorer, CrossEncoderRanking, FoundOrder, PairFacts, make_scorer
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.settings import RankingSettings
from kgrag_assets_tests.ranking.test_rank import rankable
from kgrag_assets_tests.retrieval.small_world import attributes

SOURCE, TARGET = attributes_of(
    attributes({("source", "pat.born"): "date of birth", ("target", "person.birth"): "day of birth"})
).values()


def pair(*facts: RankableFact) -> PairFacts:
    return PairFacts(SOURCE, TARGET, facts)


class SharedLetters:
    """Vectors that count letters; remembers what it was asked."""

    model_id = "letters"
    dimension = 26

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:  # noqa: ARG002 - the port
        self.asked.extend(texts)
        counts = np.array([[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_cosine_puts_the_nearest_fact_first_and_embeds_each_text_once() -> None:
    embedder = SharedLetters()
    near, far = rankable("triple", "date of birth", 0.1), rankable("triple", "zzz", 0.9)
    scored = CosineScorer(embedder).scored([pair(near, far), pair(far)])
    assert [entry.score > 0.5 for entry in scored[0]] == [True, False]
    assert scored[1][0].score == scored[0][1].score
    assert len(embedder.asked) == len(set(embedder.asked)) == 4
    best = rank_facts(scored[0], RankingSettings(top_n=1)).best
    assert [entry.text for entry in best] == ["date of birth"]


def test_none_keeps_the_order_and_the_weak() -> None:
    facts = [rankable("path", "weak", 0.05), rankable("triple", "strong", 0.9)]
    scorer = FoundOrder()
    ranking = rank_facts(scorer.scored([pair(*facts)])[0], RankingSettings(top_n=2), ordered=scorer.ordered)
    assert [entry.text for entry in ranking.best] == ["weak", "strong"]


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Make the folder of a cross-encoder with random weights and so many outputs."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, set_seed

    def made(outputs: int) -> Path:
        folder = tmp_path_factory.mktemp("cross") / f"tiny-{outputs}"
        set_seed(7)
        tokenizer = AutoTokenizer.from_pretrained(str(find_model("packaged:all-MiniLM-L6-v2").path))
        size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        config = BertConfig(vocab_size=tokenizer.vocab_size, num_labels=outputs, **size)
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return made


def test_a_cross_encoder_scores_each_question_with_each_fact_once(tiny_model: Callable[[int], Path]) -> None:
    scorer = CrossEncoderScorer(str(tiny_model(1)))
    assert scorer.model_id.startswith("cross-encoder/tiny-1@")
    one, other = rankable("triple", "date of birth", 0.5), rankable("triple", "postal code", 0.5)
    ranking = CrossEncoderRanking(scorer)
    scored = ranking.scored([pair(one, other), pair(other), pair()])
    assert [len(entry) for entry in scored] == [2, 1, 0]
    assert scored[0][1].score == scored[1][0].score
    assert all(0.0 <= entry.score <= 1.0 for entry in scored[0])
    # In a batch of other texts, a pair has the score that it has alone.
    assert ranking.scored([pair(one)])[0][0].score == pytest.approx(scored[0][0].score, abs=1e-3)


def test_a_model_that_does_not_score_relevance_is_refused(tiny_model: Callable[[int], Path]) -> None:
    with pytest.raises(EmbeddingError, match="no model of relevance"):
        CrossEncoderScorer(str(tiny_model(3))).score([("a", "b")])


def test_a_folder_without_a_model_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="KGRAG_RANKING__CROSS_ENCODER"):
        CrossEncoderScorer(str(tmp_path)).score([("a", "b")])


def test_the_settings_choose_and_no_model_is_loaded_yet(tmp_path: Path) -> None:
    embedder = SharedLetters()
    versions = {
        method: make_scorer(RankingSettings(method=method, cross_encoder=str(tmp_path / "none")), embedder).version
        for method in ("frequency", "cosine", "cross_encoder", "none")
    }
    assert len(set(versions.values())) == 4
    assert not embedder.asked
