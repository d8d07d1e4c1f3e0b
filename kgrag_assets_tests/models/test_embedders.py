"""Embedders behind servers, the check of vectors, and what all embedders share; no model is loaded here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.models.distinct import embed_distinct
from kgrag_assets.models.embedders import Embedder, EmbeddingError, check_vectors, make_embedder, unit_vectors
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.model_folder import declared_dimension, find_model, fingerprint
from kgrag_assets.models.ollama_embedder import OllamaEmbedder
from kgrag_assets.models.openai_embedder import OpenAIEmbedder
from kgrag_assets.settings import EmbedderSettings
from kgrag_assets_tests.servers import NotedPause, ollama_server, openai_server
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import OpenAIServer
from kgrag_assets_tests.servers.scripted import Reply, ScriptedServer, vector_of

Server = OpenAIServer | OllamaServer
Wire = Callable[[list[Any]], Reply]


@pytest.fixture(params=["openai", "ollama"])
def served(request: pytest.FixtureRequest) -> tuple[Server, Wire]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    return server, (openai_server if request.param == "openai" else ollama_server).embeddings


def embedder_for(server: ScriptedServer, pause: NotedPause, batch_size: int = 2) -> OpenAIEmbedder | OllamaEmbedder:
    if isinstance(server, OpenAIServer):
        settings = EmbedderSettings(
            kind="openai", model="text-embedding-test", base_url=server.url, batch_size=batch_size, timeout_s=5
        )
        return OpenAIEmbedder(settings, pause)
    settings = EmbedderSettings(
        kind="ollama", model="nomic-embed-text", base_url=server.address, batch_size=batch_size, timeout_s=5
    )
    return OllamaEmbedder(settings, pause)


def test_vectors_come_in_order_once_per_text_and_of_unit_length(served: tuple[Server, Wire], pause: NotedPause) -> None:
    server, _ = served
    embedder = embedder_for(server, pause)
    texts = ["patient", "visit date", "", "patient", "id", "visit date", "patient"]
    steps: list[int] = []
    vectors = embedder.embed(texts, steps.append)
    expected = unit_vectors(np.array([vector_of(text or " ", 8) for text in texts], dtype=np.float32))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert sum(steps) == len(texts)
    sent = [text for asked in server.asked[1:] for text in asked.body["input"]]
    assert sorted(sent) == [" ", "id", "patient", "visit date"]
    assert max(len(asked.body["input"]) for asked in server.asked) == 2
    assert embedder.tokens_used > 0


def test_the_dimension_is_asked_for_once_and_is_in_the_id(served: tuple[Server, Wire], pause: NotedPause) -> None:
    server, _ = served
    embedder = embedder_for(server, pause)
    assert (embedder.dimension, embedder.dimension) == (8, 8)
    assert embedder.model_id in ("openai/text-embedding-test@8", "ollama/nomic-embed-text@8")
    assert len(server.asked) == 1
    assert embedder.embed([]).shape == (0, 8)


GOOD = [1.0] * 8


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([GOOD], "1 vectors for 2 texts"),
        ([GOOD, GOOD, GOOD], "3 vectors for 2 texts"),
        ([], "0 vectors for 2 texts"),
        ([GOOD, [*GOOD[:7], float("nan")]], "NaN or infinity for the text at position 0"),
        ([[*GOOD[:7], float("inf")], GOOD], "NaN or infinity for the text at position 1"),
        ([GOOD, [0.0] * 8], "zero vector for the text at position 0"),
        ([GOOD[:7], GOOD[:7]], "7 dimensions where 8"),
        ([GOOD[:7], GOOD], "differ in length"),
        ([[], []], "0 dimensions where 8"),
    ],
)
def test_unusable_vectors_are_refused(
    served: tuple[Server, Wire], pause: NotedPause, vectors: list[Any], message: str
) -> None:
    server, wire = served
    embedder = embedder_for(server, pause)
    assert embedder.dimension == 8
    server.then(wire(vectors))
    with pytest.raises(EmbeddingError, match=message):
        embedder.embed(["the longer one", "short"])


def test_a_passing_failure_is_retried_and_a_lasting_one_is_an_error(
    served: tuple[Server, Wire], pause: NotedPause
) -> None:
    server, _ = served
    embedder = embedder_for(server, pause)
    server.then(*[Reply(500, {"error": {"message": "down"}})] * 2)
    assert embedder.dimension == 8
    assert len(pause.waits) == 2
    server.then(*[Reply(429, {"error": "slow down"}, {"retry-after": "9"})] * 6)
    with pytest.raises(EmbeddingError, match="429"):
        embedder.embed(["a"])
    assert pause.waits[2:] == [9.0] * 5
    server.then(*[Reply(200, b"{not json")] * 6)
    with pytest.raises(EmbeddingError, match="not"):
        embedder.embed(["a"])
    server.then(Reply(400, {"error": {"message": "input too long"}}))
    with pytest.raises(EmbeddingError, match="refused a batch"):
        embedder.embed(["a"])


def test_an_unknown_model_stops_everything(served: tuple[Server, Wire], pause: NotedPause) -> None:
    server, _ = served
    server.models = set()
    with pytest.raises(ModelUnavailableError, match="embed"):
        _ = embedder_for(server, pause).dimension


def test_openai_vectors_are_put_in_the_order_of_their_index(openai_server: OpenAIServer, pause: NotedPause) -> None:
    body = {
        "object": "list",
        "data": [{"object": "embedding", "index": 1, "embedding": GOOD}] * 2,
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
    embedder = embedder_for(openai_server, pause)
    assert embedder.dimension == 8
    openai_server.then(Reply(200, body))
    with pytest.raises(EmbeddingError, match="numbered"):
        embedder.embed(["a", "b"])


def test_known_models_need_no_call_for_their_id(openai_server: OpenAIServer) -> None:
    settings = EmbedderSettings(kind="openai", model="text-embedding-3-small", base_url=openai_server.url)
    assert make_embedder(settings).model_id == "openai/text-embedding-3-small@1536"
    assert openai_server.asked == []


def test_a_missing_key_is_said_when_the_embedder_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY"):
        make_embedder(EmbedderSettings(kind="openai", model="text-embedding-3-small"))


def test_the_default_embedder_is_known_without_loading_it() -> None:
    # In a process of its own: other tests may have loaded torch.
    code = (
        "import sys\n"
        "from kgrag_assets.models.embedders import make_embedder\n"
        "from kgrag_assets.settings import EmbedderSettings\n"
        "embedder = make_embedder(EmbedderSettings())\n"
        "print(embedder.model_id, embedder.dimension, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    name, dimension, torch_loaded = done.stdout.split()
    assert name.startswith("sentence-transformers/all-MiniLM-L6-v2@")
    assert (dimension, torch_loaded) == ("384", "False")


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_a_servers_embedder_needs_a_model_of_the_server(kind: Any) -> None:
    with pytest.raises(ModelUnavailableError, match="KGRAG_EMBEDDER__MODEL"):
        make_embedder(EmbedderSettings(kind=kind))


def make_folder(path: Path, dimension: int = 5, modules: list[dict[str, str]] | None = None) -> Path:
    (path / "1_Pooling").mkdir(parents=True)
    modules = modules or [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "config.json").write_text("{}")
    (path / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": dimension, "pooling_mode_mean_tokens": True})
    )
    (path / "model.safetensors").write_bytes(b"weights")
    return path


def test_a_models_id_is_its_content(tmp_path: Path) -> None:
    one, same, other = (make_folder(tmp_path / name / "m") for name in ("one", "same", "other"))
    (same / "README.md").write_text("a text that decides nothing")
    (other / "model.safetensors").write_bytes(b"wEights")
    first = make_embedder(EmbedderSettings(model=str(one)))
    assert first.model_id == make_embedder(EmbedderSettings(model=str(same))).model_id
    assert first.model_id != make_embedder(EmbedderSettings(model=str(other))).model_id
    assert first.dimension == 5
    before = fingerprint(one)
    (one / "model.safetensors").write_bytes(b"longer weights")
    assert fingerprint(one) != before


def test_the_dimension_is_that_of_the_last_module(tmp_path: Path) -> None:
    dense = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
    ]
    folder = make_folder(tmp_path / "dense", modules=dense)
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text('{"in_features": 5, "out_features": 3}')
    assert declared_dimension(folder) == 3
    unknown = make_folder(tmp_path / "unknown", modules=[{"path": "", "type": "somebody.else.Model"}])
    assert declared_dimension(unknown) is None
    (folder / "modules.json").write_text("{")
    with pytest.raises(ModelUnavailableError, match=r"modules\.json"):
        declared_dimension(folder)


@pytest.mark.parametrize("model", ["/no/such/folder", "./nothing", "packaged:other", "a b c"])
def test_a_model_that_is_not_there_is_said(model: str) -> None:
    with pytest.raises(ModelUnavailableError):
        find_model(model)


def test_a_folder_without_a_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="not a sentence-transformers model"):
        find_model(str(tmp_path))


def test_a_model_that_cannot_be_fetched_says_so(tmp_path: Path) -> None:
    code = (
        "from kgrag_assets.models.model_folder import find_model\n"
        "from kgrag_assets.models.errors import ModelUnavailableError\n"
        "try: find_model('somebody/some-model')\n"
        "except ModelUnavailableError as error: print(error)\n"
    )
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert "cannot be fetched" in done.stdout


def test_check_vectors_names_the_callers_position() -> None:
    vectors = np.ones((3, 2), dtype=np.float32)
    check_vectors(vectors, 3, 2)
    check_vectors(np.zeros((0, 0), dtype=np.float32), 0, 2)
    vectors[1] = 0
    with pytest.raises(EmbeddingError, match="position 1"):
        check_vectors(vectors, 3, 2)
    with pytest.raises(EmbeddingError, match="position 41"):
        check_vectors(vectors, 3, 2, positions=[40, 41, 42])
    with pytest.raises(EmbeddingError, match="0 vectors for 3 texts"):
        check_vectors(np.array(1.0, dtype=np.float32), 3, 2)


def fake_batch(batch: list[str]) -> np.ndarray:
    return np.array([vector_of(text, 4) for text in batch], dtype=np.float32)


@given(st.lists(st.text(max_size=6), max_size=30), st.integers(1, 7))
def test_each_text_gets_the_vector_of_its_own(texts: list[str], batch_size: int) -> None:
    steps: list[int] = []
    asked: list[str] = []

    def batch_of(batch: list[str]) -> np.ndarray:
        asked.extend(batch)
        assert 0 < len(batch) <= batch_size
        return fake_batch(batch)

    vectors = embed_distinct(texts, batch_of, batch_size=batch_size, dimension=4, who="m", progress=steps.append)
    assert vectors.shape == (len(texts), 4)
    assert len(asked) == len(set(asked))
    assert sum(steps) == len(texts)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, unit_vectors(fake_batch([text]))[0], atol=1e-6)


def test_the_port_is_what_the_adapters_are(openai_server: OpenAIServer, pause: NotedPause) -> None:
    embedder: Embedder = embedder_for(openai_server, pause)
    assert embedder.dimension == 8
