"""The client asks as Wikimedia wants to be asked, and gets an answer about every id."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.errors import ApiError, ChangesError, RefusedError, TimeIsUpError, UnavailableError
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp, user_agent_of
from kgrag_assets_tests.knowledge.changes.conftest import AGENT, START
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers.mediawiki_server import Fault, MediaWikiServer
from kgrag_assets_tests.servers.wiki_world import item


def _answers(client: MediaWikiClient, ids: list[str]) -> tuple[dict[str, dict[str, object]], dict[str, str]]:
    records: dict[str, dict[str, object]] = {}
    refused: dict[str, str] = {}
    for answers in client.entities(ids):
        assert not set(answers.records) & set(records)
        records.update(answers.records)
        refused.update(answers.refused)
    return records, refused


def test_entities_come_in_batches_of_fifty(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.load(*(item(f"Q{number}", f"thing {number}") for number in range(1, 121)))
    records, refused = _answers(client, [f"Q{number}" for number in range(1, 131)])
    assert len(records) == 130
    assert refused == {}
    assert "missing" in records["Q125"]
    assert records["Q7"]["labels"] == {"en": {"language": "en", "value": "thing 7"}}
    assert [question.params["ids"].count("|") + 1 for question in wiki.asked] == [50, 50, 30]


def test_every_request_says_who_asks_and_yields_to_lag(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.load(item("Q1", "universe"))
    _answers(client, ["Q1"])
    client.recent_changes(START)
    for question in wiki.asked:
        assert "somebody@example.org" in question.headers["user-agent"]
        assert question.headers["user-agent"].startswith("kgrag/")
        assert question.params["maxlag"] == "5"
        assert "gzip" in question.headers["accept-encoding"]


@pytest.mark.parametrize("contact", ["", "me", "a@b", "Zoë <zoe@example.org>", "a@example.org\r\nX-Other: 1", "@."])
def test_who_cannot_be_reached_does_not_ask(contact: str) -> None:
    with pytest.raises(ChangesError, match=r"refresh\.contact"):
        user_agent_of(contact)


def test_languages_and_parts_are_chosen(wiki: MediaWikiServer, pause: NotedPause) -> None:
    entity = item("Q1", "universe")
    entity["labels"]["de"] = {"language": "de", "value": "Universum"}
    wiki.world.load(entity)
    with MediaWikiClient(wiki.url, AGENT, languages=("de",), props=("labels",), pause=pause) as client:
        records, _ = _answers(client, ["Q1"])
    assert records["Q1"]["labels"] == {"de": {"language": "de", "value": "Universum"}}
    assert "claims" not in records["Q1"]
    assert records["Q1"]["lastrevid"] == wiki.world.revision_of("Q1")


def test_one_id_the_site_does_not_take_costs_only_itself(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.load(item("Q1", "universe"), item("P31", "instance of"))
    records, refused = _answers(client, ["Q1", "Q99999999999", "L1", "Q4000000000", "P31", "Q1|Q2"])
    assert set(records) == {"Q1", "P31"}
    assert set(refused) == {"Q99999999999", "L1", "Q4000000000", "Q1|Q2"}


def test_entities_left_out_of_a_long_answer_are_asked_again(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.load(*(item(f"Q{number}", "x" * 500) for number in range(1, 40)), item("Q40", "y" * 9000))
    wiki.max_answer = 4000
    records, refused = _answers(client, [f"Q{number}" for number in range(1, 41)])
    assert set(records) == {f"Q{number}" for number in range(1, 40)}
    assert set(refused) == {"Q40"}


def test_an_answer_beyond_the_bound_is_asked_in_halves(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.world.load(*(item(f"Q{number}", "x" * 500) for number in range(1, 40)), item("Q40", "y" * 9000))
    with MediaWikiClient(wiki.url, AGENT, max_response_bytes=6000, min_interval_s=0, pause=pause) as client:
        records, refused = _answers(client, [f"Q{number}" for number in range(1, 41)])
    assert set(records) == {f"Q{number}" for number in range(1, 40)}
    assert "more than 6,000 bytes" in refused["Q40"]


def test_lag_is_waited_for_as_long_as_the_site_asks(
    wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause
) -> None:
    wiki.world.load(item("Q1", "universe"))
    wiki.lag(1, retry_after="7")
    wiki.lag(1, retry_after=None)
    records, _ = _answers(client, ["Q1"])
    assert set(records) == {"Q1"}
    assert pause.waits == [7.0, 5.0]


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_with_retry_after_is_obeyed(
    wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause, status: int
) -> None:
    wiki.world.load(item("Q1", "universe"))
    wiki.refuse(2, status, retry_after="11")
    assert set(_answers(client, ["Q1"])[0]) == {"Q1"}
    assert pause.waits == [11.0, 11.0]


def test_a_long_pause_that_is_asked_for_ends_the_work_until_later(
    wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause
) -> None:
    wiki.refuse(1, 429, retry_after="3600")
    with pytest.raises(UnavailableError, match="3600 s of patience"):
        client.recent_changes(START)
    assert pause.waits == []


def test_tries_end(wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause) -> None:
    wiki.refuse(50, 502, retry_after=None)
    with pytest.raises(UnavailableError, match="HTTP 502") as caught:
        client.recent_changes(START)
    assert wiki.url in str(caught.value)
    assert len(wiki.asked) == 5
    assert len(pause.waits) == 4


@pytest.mark.parametrize(
    "fault",
    [
        Fault(cut=40),
        Fault(body=b"<html>the wiki is having a problem"),
        Fault(body=b"[1, 2]"),
        Fault(body=b"[" * 100_000),
        Fault(body=b"not gzip at all", headers={"content-encoding": "gzip"}),
        Fault(body=b'{"error": {"code": "internal_api_error_DBQueryError", "info": "broken"}}'),
        Fault(body=b'{"error": {"code": "readonly", "info": "the wiki is read-only"}}'),
    ],
)
def test_what_may_pass_is_tried_again(wiki: MediaWikiServer, client: MediaWikiClient, fault: Fault) -> None:
    wiki.world.load(item("Q1", "universe"))
    wiki.fail(fault)
    assert set(_answers(client, ["Q1"])[0]) == {"Q1"}
    assert len(wiki.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_what_does_not_pass_is_not_tried_again(wiki: MediaWikiServer, client: MediaWikiClient, status: int) -> None:
    wiki.refuse(1, status)
    with pytest.raises(RefusedError, match=f"HTTP {status}"):
        client.recent_changes(START)
    assert len(wiki.asked) == 1


def test_an_error_of_the_api_says_what_it_said(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.fail(Fault(body=b'{"error": {"code": "badvalue", "info": "Unrecognized value"}}'))
    with pytest.raises(ApiError, match=r"badvalue.*Unrecognized value"):
        client.recent_changes(START)


@pytest.mark.parametrize(
    "answer",
    [
        {"query": []},
        {"query": {"recentchanges": 3}},
        {"query": {"recentchanges": [3]}},
        {"query": {"recentchanges": []}, "continue": {"other": "x"}},
        {"query": {"recentchanges": []}, "continue": "more"},
    ],
)
def test_an_answer_of_another_form_is_an_error(
    wiki: MediaWikiServer, client: MediaWikiClient, answer: dict[str, object]
) -> None:
    wiki.fail(Fault(body=json.dumps(answer).encode()))
    with pytest.raises(ApiError):
        client.recent_changes(START)


def test_redirects_are_not_followed(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    with MediaWikiServer() as elsewhere:
        wiki.fail(Fault(302, headers={"location": elsewhere.url}))
        with pytest.raises(ChangesError, match="redirects are not followed"):
            client.recent_changes(START)
        assert elsewhere.asked == []


def test_a_server_that_hangs_is_left(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.fail(Fault(hang=True), times=2)
    with (
        MediaWikiClient(wiki.url, AGENT, timeout_s=0.1, max_retries=1, pause=pause) as client,
        pytest.raises(UnavailableError, match="no answer within"),
    ):
        client.recent_changes(START)


def test_requests_keep_their_distance(wiki: MediaWikiServer, pause: NotedPause) -> None:
    now = [100.0]
    with MediaWikiClient(wiki.url, AGENT, min_interval_s=2.0, pause=pause, clock=lambda: now[0]) as client:
        client.recent_changes(START)
        now[0] += 0.5
        client.recent_changes(START)
        now[0] += 3.0
        client.recent_changes(START)
    assert pause.waits == [1.5]


def test_a_wait_that_does_not_fit_in_the_time_ends_at_once(
    wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause
) -> None:
    wiki.refuse(1, 429, retry_after="20")
    with client.http.within(Deadline(10)), pytest.raises(TimeIsUpError):
        client.recent_changes(START)
    assert pause.waits == []


def test_pages_follow_each_other_by_time_and_number(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    for number in range(1, 12):
        wiki.world.edit(f"Q{number}", item(f"Q{number}", "x"))
    wiki.page_limit = 4
    seen: list[object] = []
    page = client.recent_changes(START - timedelta(seconds=1))
    seen += [entry["title"] for entry in page.entries]
    while page.more is not None:
        page = client.recent_changes(START - timedelta(seconds=1), page.more)
        seen += [entry["title"] for entry in page.entries]
    assert seen == [f"Q{number}" for number in range(1, 12)]
    assert page.server_time == START


def test_cost_is_counted(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.load(*(item(f"Q{number}", "the same name " * 20) for number in range(1, 51)))
    records, _ = _answers(client, [f"Q{number}" for number in range(1, 51)])
    assert client.http.spent.requests == 1
    assert 0 < client.http.spent.bytes < len(json.dumps(records)) / 4


@pytest.mark.parametrize("address", ["", "www.wikidata.org", "ftp://x.org", "http://", "https://me:secret@x.org/api"])
def test_an_address_that_is_none_is_refused_without_its_secrets(address: str) -> None:
    with pytest.raises(ChangesError, match="is not an address") as caught:
        PoliteHttp(address, AGENT)
    assert "secret" not in str(caught.value)
