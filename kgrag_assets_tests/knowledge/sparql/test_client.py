"""Asking an endpoint: politely, within bounds, and never taking a part of an answer for the whole."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.knowledge.http.throttle import Throttle, throttle_of
from kgrag_assets.knowledge.sparql.cache import AnswerCache
from kgrag_assets.knowledge.sparql.client import GET_LENGTH, SparqlClient
from kgrag_assets.knowledge.sparql.endpoint import Endpoint
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets_tests.knowledge.sparql.clients import CONTACT, FakeTime, client_of
from kgrag_assets_tests.servers.scripted import Reply
from kgrag_assets_tests.servers.sparql_server import RESULTS, SparqlServer

QUERY = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o"
ROW = {"s": {"type": "uri", "value": "http://x/1"}}
ANSWER = {"head": {"vars": ["s"]}, "results": {"bindings": [ROW] * 3}}


@pytest.fixture
def server() -> Iterator[SparqlServer]:
    with SparqlServer() as running:
        running.state([("Q1", "P31", "Q5"), ("Q2", "P31", "Q5")])
        yield running


def good(**changes: Any) -> Reply:
    return Reply(**{"status": 200, "body": ANSWER, "content_type": RESULTS, **changes})


def test_rows_come_with_their_kinds(server: SparqlServer) -> None:
    server.name("Q1", "Düne", "de")
    server.value("Q1", "P2", "1.5", "http://www.w3.org/2001/XMLSchema#decimal")
    with client_of(server.url) as client:
        answer = client.select(QUERY)
    assert answer.variables == ("s", "p", "o")
    found = {(row["o"].value, row["o"].type, row["o"].language, row["o"].datatype) for row in answer.rows}
    assert ("Düne", "literal", "de", None) in found
    assert ("1.5", "literal", None, "http://www.w3.org/2001/XMLSchema#decimal") in found
    assert ("http://www.wikidata.org/entity/Q5", "uri", None, None) in found


def test_a_request_says_who_asks_and_what_for(server: SparqlServer) -> None:
    with client_of(server.url) as client:
        client.select(QUERY)
    (asked,) = server.asked
    assert asked.headers["user-agent"].startswith("kgrag-assets/")
    assert f"({CONTACT})" in asked.headers["user-agent"]
    assert asked.headers["accept"] == RESULTS


@pytest.mark.parametrize("contact", ["", "nobody", "a@b\r\nX: 1", "ä@b", "(a@b)", "x" * 300 + "@b"])
def test_without_a_contact_nobody_is_asked(contact: str) -> None:
    with pytest.raises(SparqlError, match="contact"):
        Endpoint("https://query.example.org/sparql", contact)


@pytest.mark.parametrize(
    "url", ["", "ftp://x/sparql", "http://", "https://x:0/", "http://[::1/sparql", "http://x/a\nb"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SparqlError, match="not a URL"):
        Endpoint(url, CONTACT)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(SparqlError, match="password") as caught:
        Endpoint("https://me:hunter2@x.example/sparql", CONTACT)
    assert "hunter2" not in str(caught.value)


def test_a_short_query_is_a_get_and_a_long_one_a_post(server: SparqlServer) -> None:
    padded = QUERY + " #" + "é" * GET_LENGTH
    with client_of(server.url) as client:
        assert client.select(QUERY).rows == client.select(padded).rows
    assert [asked.method for asked in server.asked] == ["GET", "POST"]
    assert [asked.query for asked in server.asked] == [QUERY, padded]


def test_parameters_in_the_endpoints_address_stay(server: SparqlServer) -> None:
    with client_of(server.url + "?graph=a%20b") as client:
        assert len(client.select(QUERY).rows) == 2
    assert "graph=a" in server.asked[0].path


def test_requests_keep_their_distance_also_between_threads(server: SparqlServer) -> None:
    time = FakeTime()
    with client_of(server.url, time, min_interval_s=2.0) as client:
        threads = [threading.Thread(target=client.select, args=(QUERY + " " * n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Whoever comes later waits for the slot behind those that are given away.
    assert len(time.waits) == 4
    assert max(time.waits) <= 8.0
    assert time.clock() - 1000.0 >= 8.0
    assert len(server.asked) == 5


def test_slots_are_handed_out_one_interval_apart() -> None:
    now = [100.0]
    throttle = Throttle(lambda: now[0])
    waits: list[float] = []

    class Still(FakeTime):
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return True

    for _turn in range(4):
        throttle.wait(1.5, 1e9, Still(), "x")
    assert waits == [1.5, 3.0, 4.5]


def test_clients_of_one_host_share_their_spacing() -> None:
    assert throttle_of("https://x.example:443") is throttle_of("https://x.example:443")
    assert throttle_of("https://x.example:443") is not throttle_of("https://y.example:443")
    assert Endpoint("https://X.example/sparql", CONTACT).origin == Endpoint("https://x.example:443/b", CONTACT).origin


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for(server: SparqlServer, status: int) -> None:
    server.then(Reply(status, b"slow down", headers={"Retry-After": "7"}, content_type="text/plain"))
    time = FakeTime()
    with client_of(server.url, time) as client:
        assert len(client.select(QUERY).rows) == 2
    assert sum(time.waits) >= 7.0
    assert len(server.asked) == 2


def test_retry_after_holds_for_all_threads(server: SparqlServer) -> None:
    time = FakeTime()
    throttle = Throttle(time.clock)
    throttle.hold_off(30.0)
    endpoint = Endpoint(server.url, CONTACT, min_interval_s=0.0)
    with SparqlClient(endpoint, pause=time, clock=time.clock, throttle=throttle) as client:
        client.select(QUERY)
    assert time.waits == [30.0]


def test_a_pause_that_is_too_long_is_told_and_not_sat_out(server: SparqlServer) -> None:
    server.then(Reply(429, b"You have been banned", headers={"Retry-After": "3600"}, content_type="text/plain"))
    time = FakeTime()
    with client_of(server.url, time) as client:
        with pytest.raises(SparqlError, match=r"asks to wait 3600 s .*banned"):
            client.select(QUERY)
        # Nobody asks before that, whoever it is.
        with pytest.raises(SparqlError, match="not to be asked"):
            client.select(QUERY + " ")
        time.pass_by(3600)
        assert len(client.select(QUERY).rows) == 2
    assert len(server.asked) == 2


def test_failures_that_may_pass_are_tried_again_a_few_times(server: SparqlServer) -> None:
    server.then(Reply(502, b"bad gateway"), Reply(500, b"oops"), good(cut=True))
    with client_of(server.url) as client:
        assert len(client.select(QUERY).rows) == 2
        server.then(*[Reply(503, b"overloaded", content_type="text/plain")] * 4)
        with pytest.raises(SparqlError, match=r"127.0.0.1.*also when asked again: HTTP 503: overloaded"):
            client.select(QUERY)
    assert len(server.asked) == 4 + 4


def test_no_connection_is_an_error_that_names_the_place() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/sparql"
        with client_of(url, max_retries=1) as client, pytest.raises(SparqlError, match=r"127.0.0.1.*connection"):
            client.select(QUERY)


def test_retries_end_with_the_time_of_the_question(server: SparqlServer) -> None:
    server.then(*[Reply(503, b"busy", headers={"Retry-After": "20"})] * 3)
    time = FakeTime()
    with client_of(server.url, time) as client:
        with pytest.raises(SparqlTimeoutError, match="time for this question"):
            client.select(QUERY, client.deadline(30.0))
        assert time.clock() - 1000.0 <= 30.0
    assert len(server.asked) == 2


def test_a_question_out_of_time_is_not_asked(server: SparqlServer) -> None:
    with client_of(server.url) as client, pytest.raises(SparqlTimeoutError):
        client.select(QUERY, client.deadline(-1.0))
    assert server.asked == []


def test_an_interrupted_wait_ends_the_call(server: SparqlServer) -> None:
    time = FakeTime()
    with client_of(server.url, time) as client:
        server.then(Reply(503, b"busy", headers={"Retry-After": "20"}))
        time.interrupt()
        with pytest.raises(SparqlError):
            client.select(QUERY)
    assert len(server.asked) == 1


def test_a_server_that_says_nothing_is_given_up_once(server: SparqlServer) -> None:
    server.then(Reply(hang=True))
    endpoint = Endpoint(server.url, CONTACT, min_interval_s=0.0, timeout_s=0.2)
    with SparqlClient(endpoint) as client, pytest.raises(SparqlTimeoutError, match="in time"):
        client.select(QUERY)
    # The same query would take as long again.
    assert len(server.asked) == 1


def test_a_server_that_dribbles_is_given_up_too() -> None:
    stop = threading.Event()

    def dribble(listener: socket.socket) -> None:
        connection, _address = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-type: {RESULTS}\r\n\r\n".encode())
            while not stop.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=dribble, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/sparql"
        with (
            SparqlClient(Endpoint(url, CONTACT, min_interval_s=0.0, timeout_s=0.3)) as client,
            pytest.raises(SparqlTimeoutError),
        ):
            client.select(QUERY)
        stop.set()
        thread.join()


BROKEN = b'{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "uri", "value": "http://x/1"}}'
TIMEOUT_PAGE = b"SPARQL-QUERY: queryStr=SELECT ?s\njava.util.concurrent.TimeoutException\n\tat java.util.concurrent.Fut"


@pytest.mark.parametrize(
    "body",
    [BROKEN + b", " + TIMEOUT_PAGE, BROKEN[:-2] + b', "o": {"type": "uri", "value": "' + TIMEOUT_PAGE, TIMEOUT_PAGE],
)
def test_rows_and_then_a_timeout_are_a_timeout_and_no_rows(server: SparqlServer, body: bytes) -> None:
    server.then(good(body=body))
    with client_of(server.url) as client, pytest.raises(SparqlTimeoutError, match=r"time limit.*more selective"):
        client.select(QUERY)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        BROKEN,
        b"",
        b"[]",
        b'{"boolean": true}',
        b'{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "triple", "value": {}}}]}}',
        b'{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "uri", "value": 3}}]}}',
        json.dumps(ANSWER).encode() + b"SPARQL-QUERY: queryStr=...",
        json.dumps(ANSWER).encode().replace(b"http://x/1", b"http://x/\xff"),
        b'{"head":' * 5000,
    ],
)
def test_what_is_no_whole_answer_is_an_error(server: SparqlServer, body: bytes) -> None:
    server.then(*[good(body=body)] * 3)
    with client_of(server.url, max_retries=2) as client, pytest.raises(SparqlError, match="answer"):
        client.select(QUERY)
    assert len(server.asked) == 3


def test_a_web_page_is_no_answer(server: SparqlServer) -> None:
    server.then(Reply(200, b"<!DOCTYPE html><title>Welcome</title>", content_type="text/html; charset=utf-8"))
    with client_of(server.url) as client, pytest.raises(SparqlError, match=r"text/html.*check that the URL"):
        client.select(QUERY)
    assert len(server.asked) == 1


def test_a_part_that_virtuoso_gives_for_lack_of_time_is_no_answer(server: SparqlServer) -> None:
    server.then(good(headers={"X-SQL-State": "S1TAT", "X-SQL-Message": "RC...: Returning incomplete results"}))
    with client_of(server.url) as client, pytest.raises(SparqlTimeoutError, match="only a part"):
        client.select(QUERY)


def test_rows_cut_at_the_endpoints_limit_are_no_answer(server: SparqlServer) -> None:
    server.then(good(headers={"X-SPARQL-MaxRows": "3"}), good(headers={"X-SPARQL-MaxRows": "4"}))
    with client_of(server.url) as client:
        with pytest.raises(SparqlError, match="cuts answers at 3 rows"):
            client.select(QUERY)
        assert len(client.select(QUERY).rows) == 3


def test_a_wrong_query_is_told_with_the_servers_words(server: SparqlServer) -> None:
    with client_of(server.url) as client, pytest.raises(SparqlError, match=r"did not understand.*MALFORMED"):
        client.select("SELECT nothing")
    assert len(server.asked) == 1


def test_a_servers_words_are_one_short_line_without_keys(server: SparqlServer) -> None:
    words = "no\r\n\x1b[31m\x07 " + "Bearer abcdef012345 " + "x" * 5000
    server.then(Reply(400, words.encode(), content_type="text/plain"))
    with client_of(server.url) as client, pytest.raises(SparqlError) as caught:
        client.select(QUERY)
    told = str(caught.value)
    assert len(told) < 600
    assert told.isprintable()
    assert "abcdef" not in told


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "login"), (403, "refuses"), (404, "check the URL"), (405, "check the URL"), (418, "418")]
)
def test_refusals_say_what_to_do(server: SparqlServer, status: int, hint: str) -> None:
    server.then(Reply(status, b"<html>no</html>", content_type="text/html"))
    with client_of(server.url) as client, pytest.raises(SparqlError, match=hint):
        client.select(QUERY)
    assert len(server.asked) == 1


def test_an_answer_that_is_too_large_is_not_read_to_its_end(server: SparqlServer) -> None:
    packed = gzip.compress(b'{"head":' + b" " * (64 << 20))
    server.then(good(body=packed, headers={"Content-Encoding": "gzip"}))
    with client_of(server.url, max_answer_bytes=1 << 20) as client, pytest.raises(SparqlError, match="more than 1 MB"):
        client.select(QUERY)


def test_a_redirect_within_the_host_is_followed(server: SparqlServer) -> None:
    for code, padding in ((301, ""), (307, " " * GET_LENGTH)):
        server.then(Reply(code, b"", headers={"Location": "/sparql?query=other"}))
        with client_of(server.url.replace("/sparql", "/old")) as client:
            assert len(client.select(QUERY + padding).rows) == 2
    assert {asked.query.strip() for asked in server.asked} == {QUERY}
    assert [asked.method for asked in server.asked] == ["GET", "GET", "POST", "POST"]


def test_a_redirect_to_another_host_is_not_followed(server: SparqlServer) -> None:
    with SparqlServer() as other:
        server.then(*[Reply(302, b"", headers={"Location": other.url})] * 5)
        with client_of(server.url) as client, pytest.raises(SparqlError, match="not followed to another host"):
            client.select(QUERY)
        assert other.asked == []
    assert len(server.asked) == 1


def test_a_circle_of_redirects_ends(server: SparqlServer) -> None:
    server.then(*[Reply(302, b"", headers={"Location": "/sparql"})] * 20)
    with client_of(server.url) as client, pytest.raises(SparqlError, match="circle"):
        client.select(QUERY)


def test_a_kept_answer_is_not_asked_for_again(server: SparqlServer, tmp_path: Path) -> None:
    with client_of(server.url, kept=tmp_path) as client:
        first = client.select(QUERY)
    server.state([("Q3", "P31", "Q5")])
    with client_of(server.url, kept=tmp_path) as client:
        again = client.select(QUERY)
        assert (first.kept, again.kept) == (False, True)
        assert again.rows == first.rows
        assert len(client.select(QUERY, fresh=True).rows) == 3
        assert len(client.select(QUERY).rows) == 3
        assert len(client.select(QUERY + " ").rows) == 3
    assert len(server.asked) == 3


def test_a_failure_is_not_kept(server: SparqlServer, tmp_path: Path) -> None:
    server.then(good(body=BROKEN + TIMEOUT_PAGE))
    with client_of(server.url, kept=tmp_path) as client:
        with pytest.raises(SparqlTimeoutError):
            client.select(QUERY)
        assert len(client.select(QUERY).rows) == 2


def test_a_kept_answer_that_was_damaged_is_asked_for_again(server: SparqlServer, tmp_path: Path) -> None:
    with client_of(server.url, kept=tmp_path) as client:
        client.select(QUERY)
        (kept,) = tmp_path.glob("*.json")
        kept.write_bytes(kept.read_bytes()[:-5])
        assert len(client.select(QUERY).rows) == 2
        assert client.select(QUERY).kept
    assert len(server.asked) == 2


def test_kept_answers_grow_old(tmp_path: Path) -> None:
    now = [1_000_000.0]
    cache = AnswerCache(tmp_path, max_age_s=60.0, now=lambda: now[0])
    cache.put("a1", b"x")
    (path,) = tmp_path.glob("*.json")
    os.utime(path, (now[0], now[0]))
    assert cache.get("a1") == b"x"
    now[0] += 61.0
    assert cache.get("a1") is None
    now[0] -= 1000.0
    assert cache.get("a1") is None


def test_kept_answers_stay_within_their_bound_and_the_oldest_go(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, max_bytes=1000)
    for number in range(30):
        cache.put(f"k{number}", b"x" * 100)
        os.utime(tmp_path / f"k{number}.json", (1e9 + number, 1e9 + number))
        assert sum(path.stat().st_size for path in tmp_path.glob("*.json")) <= 1000
    left = {path.stem for path in tmp_path.glob("*.json")}
    assert "k29" in left
    assert left == {f"k{number}" for number in range(30 - len(left), 30)}
    cache.put("huge", b"x" * 2000)
    assert cache.get("huge") is None
    cache.clear()
    assert list(tmp_path.glob("*.json")) == []


def test_a_bound_holds_for_what_an_earlier_process_kept(tmp_path: Path) -> None:
    AnswerCache(tmp_path, max_bytes=10_000).put("old", b"x" * 900)
    os.utime(tmp_path / "old.json", (1e9, 1e9))
    AnswerCache(tmp_path, max_bytes=1000).put("new", b"x" * 500)
    assert {path.stem for path in tmp_path.glob("*.json")} == {"new"}


@pytest.mark.parametrize("key", ["../x", "", "a/b", "."])
def test_a_key_is_no_path(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        AnswerCache(tmp_path).put(key, b"x")
