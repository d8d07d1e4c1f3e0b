"""The ledger: durable, shared, and honest about failures."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.lake.files import LakeError
from kgrag_assets.models.chat import ChatReply, ChatRequest, Message
from kgrag_assets.models.ledger import CallLedger, ask_once
from kgrag_assets.models.retrying import Pause
from kgrag_assets.rows.llm_calls import CALL_STATUSES, LLM_CALLS


def request(text: str = "Same?") -> ChatRequest:
    return ChatRequest("openai", "gpt-4o-mini", (Message("user", text),))


@pytest.fixture
def ledger(tmp_path: Path) -> CallLedger:
    return CallLedger(tmp_path / "ledger" / "llm_calls.sqlite")


class CountingModel:
    """Answers with the replies it was given, one after the other."""

    provider = "openai"
    model = "gpt-4o-mini"

    def __init__(self, *replies: ChatReply) -> None:
        self.replies = list(replies)
        self.pause = Pause()

    def ask(self, request: ChatRequest) -> ChatReply:  # noqa: ARG002 - the protocol's name
        return self.replies.pop(0)


def test_nothing_is_made_before_it_is_used(ledger: CallLedger) -> None:
    assert ledger.frame().equals(LLM_CALLS.empty())
    assert not ledger.path.parent.exists()


def test_a_kept_call_is_found_and_listed(ledger: CallLedger) -> None:
    before = datetime.now(UTC)
    reply = ChatReply("yes", "answered", "", 10, 2, 0.5, 0.001)
    ledger.keep("clinic", request(), reply)
    assert ledger.find(request().request_hash) == reply
    assert ledger.find(request("other").request_hash) is None
    (row,) = ledger.frame().to_dicts()
    asked_at = row.pop("asked_at")
    assert before <= asked_at <= datetime.now(UTC)
    assert row == {
        "call_id": 1,
        "task": "clinic",
        "request_hash": request().request_hash,
        "provider": "openai",
        "model": "gpt-4o-mini",
        "request": request().as_json(),
        "raw_answer": "yes",
        "status": "answered",
        "error": "",
        "tokens_in": 10,
        "tokens_out": 2,
        "latency_s": 0.5,
        "cost_usd": 0.001,
    }


@pytest.mark.parametrize("status", CALL_STATUSES)
def test_only_what_brought_text_is_found_again(ledger: CallLedger, status: str) -> None:
    ledger.keep("clinic", request("text"), ChatReply("some text", status))
    ledger.keep("clinic", request("none"), ChatReply(" ", status))
    assert (ledger.find(request("text").request_hash) is not None) == (status in ("answered", "truncated"))
    assert ledger.find(request("none").request_hash) is None
    assert ledger.frame()["status"].to_list() == [status, status]


def test_failures_are_asked_again_and_answers_are_not(ledger: CallLedger) -> None:
    model = CountingModel(ChatReply("", "timeout", "no answer"), ChatReply("yes", "answered"))
    assert ask_once(model, ledger, "clinic", request()) == (ChatReply("", "timeout", "no answer"), False)
    assert ask_once(model, ledger, "clinic", request()) == (ChatReply("yes", "answered"), False)
    assert ask_once(model, ledger, "another task", request()) == (ChatReply("yes", "answered"), True)
    assert ledger.frame()["status"].to_list() == ["timeout", "answered"]


def test_any_text_survives(ledger: CallLedger) -> None:
    odd = "'; DROP TABLE calls; -- \x00 \U0001f600 \n \\ \""
    ledger.keep(odd, request(odd + "\ud800"), ChatReply(odd, "answered", error=odd))
    ledger.close()
    row = ledger.frame().row(0, named=True)
    assert (row["task"], row["raw_answer"], row["error"]) == (odd, odd, odd)


def test_what_decides_an_answer_decides_the_hash() -> None:
    base = ChatRequest("openai", "m", (Message("user", "a"),), 0.0, 300, {"type": "object"}, 1)
    others = [
        ChatRequest("ollama", "m", (Message("user", "a"),), 0.0, 300, {"type": "object"}, 1),
        ChatRequest("openai", "n", (Message("user", "a"),), 0.0, 300, {"type": "object"}, 1),
        ChatRequest("openai", "m", (Message("system", "a"),), 0.0, 300, {"type": "object"}, 1),
        ChatRequest("openai", "m", (Message("user", "a"), Message("user", "")), 0.0, 300, {"type": "object"}, 1),
        ChatRequest("openai", "m", (Message("user", "a"),), 0.1, 300, {"type": "object"}, 1),
        ChatRequest("openai", "m", (Message("user", "a"),), 0.0, 301, {"type": "object"}, 1),
        ChatRequest("openai", "m", (Message("user", "a"),), 0.0, 300, None, 1),
        ChatRequest("openai", "m", (Message("user", "a"),), 0.0, 300, {"type": "object"}, None),
    ]
    assert len({one.request_hash for one in [base, *others]}) == 1 + len(others)
    assert base.request_hash == ChatRequest(*[getattr(base, name) for name in base.__dataclass_fields__]).request_hash
    assert ChatRequest("openai", "m", (), temperature=0).request_hash == ChatRequest("openai", "m", ()).request_hash


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="answered"):
        ChatReply("", "fine")


def test_threads_share_one_ledger(ledger: CallLedger) -> None:
    def work(name: int) -> None:
        for number in range(10):
            ledger.keep("clinic", request(f"{name}-{number}"), ChatReply("yes", "answered"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    frame = ledger.frame()
    assert frame.height == frame["request_hash"].n_unique() == 80
    assert frame["call_id"].to_list() == list(range(1, 81))


WRITER = """
import sys
from pathlib import Path
from kgrag_assets.models.chat import ChatReply, ChatRequest, Message
from kgrag_assets.models.ledger import CallLedger
sys.stdin.readline()
for number in range(20):
    # Opened anew each time: making and opening the file is where processes get into each other's way.
    ledger = CallLedger(Path(sys.argv[1]))
    ledger.keep(sys.argv[2], ChatRequest("openai", "m", (Message("user", f"{sys.argv[2]} {number}"),)),
                ChatReply("yes", "answered"))
    ledger.close()
"""


def test_processes_share_one_file(ledger: CallLedger) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(ledger.path), f"task {name}"], stdin=subprocess.PIPE, text=True
        )
        for name in range(3)
    ]
    # All begin together, on a file that does not exist yet.
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0, 0, 0]
    assert ledger.frame().group_by("task").len().sort("task").rows() == [(f"task {n}", 20) for n in range(3)]


def test_a_call_is_on_disk_when_keep_returns(ledger: CallLedger) -> None:
    ledger.keep("clinic", request(), ChatReply("yes", "answered"))
    # A reader of its own sees it while the writer still holds the file open.
    with sqlite3.connect(ledger.path) as other:
        assert other.execute("SELECT raw_answer FROM calls").fetchall() == [("yes",)]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "llm_calls.sqlite"
    path.write_bytes(b"this is not a database, " * 100)
    with pytest.raises(LakeError, match="not a readable ledger"):
        CallLedger(path).find("x")
    assert path.read_bytes().startswith(b"this is not")


def test_a_newer_ledger_is_refused(ledger: CallLedger) -> None:
    ledger.keep("clinic", request(), ChatReply("yes", "answered"))
    ledger.close()
    with sqlite3.connect(ledger.path) as other:
        other.execute("PRAGMA user_version=99")
    with pytest.raises(LakeError, match="newer version"):
        CallLedger(ledger.path).find("x")


def test_a_full_disk_is_said_and_loses_nothing(ledger: CallLedger) -> None:
    ledger.keep("clinic", request(), ChatReply("yes", "answered"))
    assert ledger._connection is not None
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    ledger._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(LakeError, match="no space left"):
        ledger.keep("clinic", request("long"), ChatReply("x" * 100_000, "answered"))
    assert ledger.frame()["raw_answer"].to_list() == ["yes"]
    ledger._connection.execute("PRAGMA max_page_count=100000")
    ledger.keep("clinic", request("long"), ChatReply("x" * 100_000, "answered"))
    assert ledger.frame().height == 2


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="file"):
        CallLedger(tmp_path / "file" / "llm_calls.sqlite").keep("clinic", request(), ChatReply("", "error"))


def test_an_unknown_cost_stays_unknown(ledger: CallLedger) -> None:
    ledger.keep("clinic", request(), ChatReply("yes", "answered", cost_usd=None))
    assert ledger.frame()["cost_usd"].to_list() == [None]
    assert ledger.frame().schema["cost_usd"] == pl.Float64
