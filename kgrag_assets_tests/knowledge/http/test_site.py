"""Whoever asks a host: what it told one of them holds for all, and each error is of the room that asks."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.errors import TimeIsUpError, UnavailableError
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.http.throttle import Throttle, throttle_of
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.endpoint import Endpoint
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.models.retrying import Pause
from kgrag_assets_tests.knowledge.changes.conftest import AGENT, START
from kgrag_assets_tests.knowledge.sparql.clients import CONTACT, FakeTime
from kgrag_assets_tests.servers.mediawiki_server import MediaWikiServer
from kgrag_assets_tests.servers.wiki_world import World


@pytest.fixture(name="wiki")
def running_wiki() -> Iterator[MediaWikiServer]:
    """Run a server for an empty world."""
    with MediaWikiServer(World(START)) as server:
        yield server


def status_of(response: httpx.Response, _body: bytes) -> int:
    return response.status_code


def test_what_one_client_is_told_holds_for_the_others(wiki: MediaWikiServer) -> None:
    time = FakeTime()
    throttle = Throttle(time.clock)
    wiki.refuse(1, 429, retry_after="20")
    one, two = (
        PoliteHttp(wiki.url, AGENT, min_interval_s=0.0, max_retries=0, pause=time, clock=time.clock, throttle=throttle)
        for _client in range(2)
    )
    with one, two:
        with pytest.raises(UnavailableError, match="20 s of patience"):
            one.ask(wiki.url, read=status_of)
        assert two.ask(wiki.url, {"action": "query", "titles": "Q1", "format": "json"}, read=status_of) == 200
    assert time.waits == [20.0]


def test_a_pause_that_was_sat_out_is_not_waited_for_again_where_the_clock_lags(wiki: MediaWikiServer) -> None:
    class Still(Pause):
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return True

    waits: list[float] = []
    wiki.refuse(1, 429, retry_after="20")
    with PoliteHttp(wiki.url, AGENT, min_interval_s=0.0, pause=Still(), clock=lambda: 7.0) as http:
        http.ask(wiki.url, {"action": "query", "titles": "Q1", "format": "json"}, read=status_of)
    assert waits == [20.0]


def test_a_host_that_wants_to_be_left_alone_is_asked_by_nobody() -> None:
    throttle_of("https://held.example:443").hold_off(3600)
    url = "https://held.example/"
    with (
        PoliteHttp(url, AGENT) as http,
        pytest.raises(UnavailableError, match=r"not to be asked.* s of patience"),
    ):
        http.ask(url, read=status_of)
    with SparqlClient(Endpoint(url, CONTACT)) as client, pytest.raises(SparqlError, match="asks to wait"):
        client.select("SELECT * {}")


def test_time_that_ends_before_the_turn_is_an_error_of_who_asks() -> None:
    throttle_of("https://soon.example:443").hold_off(30)
    url = "https://soon.example/"
    with (
        PoliteHttp(url, AGENT) as http,
        http.within(Deadline(5)),
        pytest.raises(TimeIsUpError, match="may be asked again"),
    ):
        http.ask(url, read=status_of)
    with SparqlClient(Endpoint(url, CONTACT)) as client, pytest.raises(SparqlTimeoutError, match="may be asked again"):
        client.select("SELECT * {}", client.deadline(5))
