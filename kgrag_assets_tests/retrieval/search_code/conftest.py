"""Fixtures of this folder's tests."""

from __future__ import annotations

import pytest

from kgrag_assets_tests.retrieval.search_code.small_graph import SmallGraph
from kgrag_assets_tests.servers import noted_pause, running_openai_server

__all__ = ["noted_pause", "running_openai_server"]


@pytest.fixture
def graph() -> SmallGraph:
    return SmallGraph()
