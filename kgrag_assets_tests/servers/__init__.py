"""Servers on loopback that speak the real protocols; import the fixtures into a conftest to use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgrag_assets.models.retrying import Pause
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import OpenAIServer


class NotedPause(Pause):
    """A pause that does not wait but notes how long it would have."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        """Note the wait; nothing passes."""
        self.waits.append(seconds)
        return super().wait(0)


@pytest.fixture(name="openai_server")
def running_openai_server() -> Iterator[OpenAIServer]:
    """Run a server with the OpenAI protocol."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(name="ollama_server")
def running_ollama_server() -> Iterator[OllamaServer]:
    """Run a server with the Ollama protocol."""
    with OllamaServer() as server:
        yield server


@pytest.fixture(name="pause")
def noted_pause() -> NotedPause:
    """Make a pause that takes no time."""
    return NotedPause()
