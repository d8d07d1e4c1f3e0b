"""A small Wikidata on loopback, and clients that wait without time passing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient
from kgrag_assets.knowledge.changes.polite_http import user_agent_of
from kgrag_assets_tests.servers import NotedPause, noted_pause
from kgrag_assets_tests.servers.mediawiki_server import MediaWikiServer
from kgrag_assets_tests.servers.wiki_world import World

__all__ = ["noted_pause"]

START = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
AGENT = user_agent_of("somebody@example.org")


@pytest.fixture(name="wiki")
def running_wiki() -> Iterator[MediaWikiServer]:
    """Run a server for an empty world whose time stands still."""
    with MediaWikiServer(World(START)) as server:
        yield server


@pytest.fixture(name="client")
def client_of_wiki(wiki: MediaWikiServer, pause: NotedPause) -> Iterator[MediaWikiClient]:
    """Make a client of the server that does not really wait."""
    with MediaWikiClient(wiki.url, AGENT, pause=pause, min_interval_s=0) as client:
        yield client
