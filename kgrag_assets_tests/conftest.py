"""Fixtures that more than one room's tests use."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgrag_assets.lake.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake in a folder of its own."""
    return Lake.at(tmp_path / "lake")
