"""The newest complete dump is found, and arrives whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.dumps import Dump, fetch_dump, latest_dump
from kgrag_assets.knowledge.changes.errors import ChangesError, TimeIsUpError, UnavailableError
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets_tests.knowledge.changes.conftest import AGENT
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers.mediawiki_server import Fault, MediaWikiServer, Question
from kgrag_assets_tests.servers.wiki_world import item

FOLDER = "/wikidatawiki/entities"


@pytest.fixture(name="http")
def http_of_dumps(wiki: MediaWikiServer, pause: NotedPause) -> Iterator[PoliteHttp]:
    """Ask the folder of dumps."""
    with PoliteHttp(wiki.dumps_url, AGENT, pause=pause, min_interval_s=0) as http:
        yield http


@pytest.fixture(name="plain")
def a_dump(wiki: MediaWikiServer) -> bytes:
    """Publish two weeks' dumps; the newer one unpacked."""
    wiki.world.load(*(item(f"Q{number}", f"{number * 7919 % 104729}") for number in range(1, 300)))
    wiki.publish_dump("20260420", [item("Q1", "old")])
    wiki.world.pass_time(7 * 86400)
    return wiki.publish_dump("20260427")


def _gets(wiki: MediaWikiServer) -> list[Question]:
    return [question for question in wiki.asked if question.method == "GET" and "all.json" in question.path]


@pytest.mark.usefixtures("plain")
def test_the_newest_dump_is_found_with_its_lasting_address(wiki: MediaWikiServer, http: PoliteHttp) -> None:
    dump = latest_dump(wiki.dumps_url, http)
    assert dump.url == f"{wiki.dumps_url}/20260427/wikidata-20260427-all.json.bz2"
    assert dump.modified == wiki.world.now()
    assert dump.size == len(wiki.files["/latest-all.json.bz2"].content)
    assert dump.checksum_kind == "sha1"
    assert latest_dump(wiki.dumps_url, http, ("gz", "bz2")).url.endswith(".gz")
    assert latest_dump(wiki.dumps_url, http).version == dump.version


@pytest.mark.usefixtures("plain")
def test_a_newer_dump_goes_before_a_preferred_ending(wiki: MediaWikiServer, http: PoliteHttp) -> None:
    wiki.files["/latest-all.json.gz"].modified += timedelta(days=1)
    assert latest_dump(wiki.dumps_url, http).url.endswith("/20260427/wikidata-20260427-all.json.gz")


@pytest.mark.usefixtures("plain")
def test_a_dump_that_is_being_written_is_not_taken(wiki: MediaWikiServer, http: PoliteHttp) -> None:
    before = latest_dump(wiki.dumps_url, http)
    finished = {name: file for name, file in wiki.files.items() if name.startswith("/latest")}
    wiki.world.pass_time(7 * 86400)
    wiki.publish_dump("20260504", [item("Q1", "only the beginning")])
    wiki.files.update(finished)
    assert latest_dump(wiki.dumps_url, http) == before


def test_without_a_listing_or_sums_the_latest_is_taken_as_it_is(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    for name in [name for name in wiki.files if not name.startswith("/latest")]:
        del wiki.files[name]
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    assert (dump.url, dump.checksum) == (f"{wiki.dumps_url}/latest-all.json.gz", None)
    assert gzip.decompress(fetch_dump(dump, tmp_path / "d.gz", http).read_bytes()) == plain


def test_no_dump_at_all_is_an_error(wiki: MediaWikiServer, http: PoliteHttp) -> None:
    with pytest.raises(ChangesError, match=r"no latest-all\.json\.bz2 or \.gz"):
        latest_dump(wiki.dumps_url, http)


def test_a_dump_arrives_whole(wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    target = tmp_path / "graphs" / "dump.json.gz"
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    assert fetch_dump(dump, target, http, lambda done, size: heard.append((done, size))) == target
    assert gzip.decompress(target.read_bytes()) == plain
    assert heard[-1] == (dump.size, dump.size)
    assert [path.name for path in target.parent.iterdir()] == ["dump.json.gz"]
    assert _gets(wiki)[-1].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_off_goes_on(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path, ranges: bool
) -> None:
    wiki.gives_ranges = ranges
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    wiki.fail(Fault(cut=600), times=3, path=f"{FOLDER}/20260427")
    target = fetch_dump(dump, tmp_path / "d.gz", http)
    assert gzip.decompress(target.read_bytes()) == plain
    assert len(_gets(wiki)) == 4
    if ranges:
        assert [question.headers.get("range") for question in _gets(wiki)] == [
            None,
            "bytes=600-",
            "bytes=1200-",
            "bytes=1800-",
        ]
        assert _gets(wiki)[1].headers["if-range"] == dump.etag


def test_the_next_call_goes_on_where_the_last_ended(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    target = tmp_path / "d.gz"
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/20260427")
    wiki.refuse(50, 503, None, path=f"{FOLDER}/20260427")
    with pytest.raises(UnavailableError):
        fetch_dump(dump, target, http)
    assert not target.exists()
    wiki._faults.clear()
    fetch_dump(dump, target, http)
    assert _gets(wiki)[-1].headers["range"] == "bytes=1500-"
    assert gzip.decompress(target.read_bytes()) == plain


def test_the_time_ends_a_download_and_what_came_stays(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/20260427")
    wiki.refuse(1, 503, "30", path=f"{FOLDER}/20260427")
    with http.within(Deadline(10)), pytest.raises(TimeIsUpError):
        fetch_dump(dump, tmp_path / "d.gz", http)
    assert (tmp_path / "d.gz.part").stat().st_size == 1500
    assert gzip.decompress(fetch_dump(dump, tmp_path / "d.gz", http).read_bytes()) == plain


@pytest.mark.usefixtures("plain")
def test_a_file_that_becomes_another_one_midway_is_not_mixed(
    wiki: MediaWikiServer, http: PoliteHttp, tmp_path: Path
) -> None:
    for name in [name for name in wiki.files if not name.startswith("/latest")]:
        del wiki.files[name]
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    old = tmp_path / "d.gz"
    old.write_bytes(b"last week's")
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/latest-all")

    def publish(question: Question) -> None:
        if "range" not in question.headers and question.method == "GET":
            wiki.world.pass_time(7 * 86400)
            wiki.world.load(item("Q999", "new"))
            published.append(wiki.publish_dump("20260504"))

    published: list[bytes] = []
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/latest-all")
    wiki.on_asked = publish
    with pytest.raises(ChangesError, match="has become another file"):
        fetch_dump(dump, old, http)
    assert old.read_bytes() == b"last week's"
    wiki.on_asked = None
    wiki._faults.clear()
    newest = latest_dump(wiki.dumps_url, http, ("gz",))
    assert newest.version != dump.version
    assert gzip.decompress(fetch_dump(newest, old, http).read_bytes()) == published[-1]


def test_a_part_of_another_dump_is_thrown_away(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    (tmp_path / "d.gz.part").write_bytes(b"x" * 100)
    (tmp_path / "d.gz.part.note").write_text(json.dumps({"url": "http://elsewhere"}), "utf-8")
    fetch_dump(latest_dump(wiki.dumps_url, http, ("gz",)), tmp_path / "d.gz", http)
    assert gzip.decompress((tmp_path / "d.gz").read_bytes()) == plain


def test_what_does_not_fit_its_sum_is_removed(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    target = tmp_path / "d.gz"
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/20260427")
    wiki.refuse(50, 503, None, path=f"{FOLDER}/20260427")
    with pytest.raises(UnavailableError):
        fetch_dump(dump, target, http)
    wiki._faults.clear()
    part = tmp_path / "d.gz.part"
    part.write_bytes(b"\0" * 1500)
    with pytest.raises(ChangesError, match="does not fit its sha1 sum"):
        fetch_dump(dump, target, http)
    assert list(tmp_path.iterdir()) == []
    assert gzip.decompress(fetch_dump(dump, target, http).read_bytes()) == plain


def test_a_part_longer_than_the_file_begins_anew(
    wiki: MediaWikiServer, http: PoliteHttp, plain: bytes, tmp_path: Path
) -> None:
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    wiki.fail(Fault(cut=1500), path=f"{FOLDER}/20260427")
    wiki.refuse(50, 503, None, path=f"{FOLDER}/20260427")
    with pytest.raises(UnavailableError):
        fetch_dump(dump, tmp_path / "d.gz", http)
    wiki._faults.clear()
    (tmp_path / "d.gz.part").write_bytes(b"\0" * (dump.size + 10))
    assert gzip.decompress(fetch_dump(dump, tmp_path / "d.gz", http).read_bytes()) == plain


def test_a_disk_without_room_is_said_before_anything_is_fetched(
    wiki: MediaWikiServer, http: PoliteHttp, tmp_path: Path
) -> None:
    huge = Dump(f"{wiki.dumps_url}/latest-all.json.gz", 1 << 60, None, None)
    with pytest.raises(ChangesError, match="make room"):
        fetch_dump(huge, tmp_path / "d.gz", http)
    assert wiki.asked == []


@pytest.mark.usefixtures("plain")
def test_a_download_that_brings_nothing_ends(wiki: MediaWikiServer, http: PoliteHttp, tmp_path: Path) -> None:
    dump = latest_dump(wiki.dumps_url, http, ("gz",))
    wiki.fail(Fault(cut=0), times=500, path=f"{FOLDER}/20260427")
    with pytest.raises(UnavailableError):
        fetch_dump(dump, tmp_path / "d.gz", http)
    assert len(_gets(wiki)) < 40
