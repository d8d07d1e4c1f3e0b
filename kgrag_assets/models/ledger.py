"""The ledger of calls to chat models: kept in SQLite the moment they end, found again by request."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.locks import locked
from kgrag_assets.models.chat import REPLIED_STATUSES, ChatModel, ChatReply, ChatRequest
from kgrag_assets.rows.llm_calls import LLM_CALLS

_VERSION = 1
_BUSY_S = 60.0

_CREATE = """
CREATE TABLE IF NOT EXISTS calls (
    call_id INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    request TEXT NOT NULL,
    raw_answer TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    latency_s REAL NOT NULL,
    cost_usd REAL,
    asked_at_us INTEGER NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS calls_by_request ON calls (request_hash)"
_INSERT = """
INSERT INTO calls (task, request_hash, provider, model, request, raw_answer, status, error,
                   tokens_in, tokens_out, latency_s, cost_usd, asked_at_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FIND = """
SELECT raw_answer, status, error, tokens_in, tokens_out, latency_s, cost_usd
FROM calls WHERE request_hash = ? AND status IN (?, ?) ORDER BY call_id DESC
"""
_ALL = """
SELECT call_id, task, request_hash, provider, model, request, raw_answer, status, error,
       tokens_in, tokens_out, latency_s, cost_usd, asked_at_us
FROM calls ORDER BY call_id
"""


class CallLedger:
    """Every call that ended, in one SQLite file.

    Several threads may share one ledger, and several processes one file: each call is one short
    transaction in write-ahead mode. ``synchronous=FULL`` makes a kept call survive a killed process and a
    power cut. The file is made on the first use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._path

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def find(self, request_hash: str) -> ChatReply | None:
        """Return the newest reply to a request that brought text, or None: failures are asked again.

        Raises:
            LakeError: the file cannot be read.
        """
        with self._using() as connection:
            rows = connection.execute(_FIND, (request_hash, *REPLIED_STATUSES)).fetchall()
        for text, status, error, tokens_in, tokens_out, latency_s, cost_usd in rows:
            reply = ChatReply(text, status, error, tokens_in, tokens_out, latency_s, cost_usd)
            if reply.brought_text:
                return reply
        return None

    def keep(self, task: str, request: ChatRequest, reply: ChatReply) -> None:
        """Keep a call; it is durable when this returns.

        Args:
            task: the task that asked.
            request: what was asked.
            reply: what came of it, whatever its status.

        Raises:
            LakeError: the file cannot be written.
        """
        now = datetime.now(UTC)
        row = (
            task,
            request.request_hash,
            request.provider,
            request.model,
            request.as_json(),
            reply.text,
            reply.status,
            reply.error,
            reply.tokens_in,
            reply.tokens_out,
            reply.latency_s,
            reply.cost_usd,
            int(now.timestamp()) * 1_000_000 + now.microsecond,
        )
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(_INSERT, row)
                connection.execute("COMMIT")
            except sqlite3.Error:
                # A full disk may have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def frame(self) -> pl.DataFrame:
        """Return all calls as rows of ``llm_calls``; an empty frame where no call was ever kept.

        Raises:
            LakeError: the file cannot be read.
        """
        if self._connection is None and not self._path.exists():
            return LLM_CALLS.empty()
        with self._using() as connection:
            rows = connection.execute(_ALL).fetchall()
        names = [*LLM_CALLS.names[:-1], "asked_at"]
        frame = pl.DataFrame(rows, schema={**LLM_CALLS.schema, "asked_at": pl.Int64}, orient="row", strict=True)
        frame = frame.with_columns(pl.col("asked_at").cast(pl.Datetime("us", "UTC")))
        return LLM_CALLS.conform(frame.select(names))

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                yield self._connection
            except sqlite3.Error as error:
                raise _explained(error, self._path) from error

    def _open(self) -> sqlite3.Connection:
        # SQLite does not wait when two connections turn a new file to write-ahead mode at once; we do.
        with locked(self._path.with_suffix(".lock"), _BUSY_S):
            return self._opened()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            _check_version(version, self._path)
            if version < _VERSION:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_CREATE)
                connection.execute(_INDEX)
                connection.execute(f"PRAGMA user_version={_VERSION:d}")
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection


def ask_once(model: ChatModel, ledger: CallLedger, task: str, request: ChatRequest) -> tuple[ChatReply, bool]:
    """Answer from the ledger, or ask and keep the answer before it is returned.

    Args:
        model: whom to ask.
        ledger: where replies are kept.
        task: the task that asks, for the ledger.
        request: the question.

    Returns:
        The reply, and whether it was kept from an earlier call.

    Raises:
        ModelUnavailableError: see ``ChatModel.ask``.
        LakeError: the ledger cannot be written.
    """
    kept = ledger.find(request.request_hash)
    if kept is not None:
        return kept, True
    reply = model.ask(request)
    ledger.keep(task, request, reply)
    return reply, False


def _check_version(version: int, path: Path) -> None:
    if version > _VERSION:
        raise LakeError(
            f"{path} was written by a newer version of kgrag (format {version}, this one knows {_VERSION}): "
            f"update kgrag, or point KGRAG_LAKE at another folder"
        )


def _explained(error: sqlite3.Error, path: Path) -> LakeError:
    text = str(error)
    if "full" in text:
        return LakeError(f"no space left to write {path}: free some disk space and run again; answered calls are kept")
    if "not a database" in text or "malformed" in text:
        return LakeError(f"{path} is not a readable ledger ({text}): move it away; calls will be asked and paid again")
    if "locked" in text:
        return LakeError(f"{path} is busy: another process has held it for {_BUSY_S:.0f} s; run again when it is done")
    if "unable to open" in text or "readonly" in text:
        return LakeError(f"not allowed to write {path}: check the folder's owner and permissions")
    return LakeError(f"cannot use the ledger {path}: {text}")
