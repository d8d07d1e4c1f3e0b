"""A live PostgreSQL, started from Debian's programs on loopback: keys, comments, values, rights, and secrets kept."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psycopg
import pytest

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.fingerprint import schema_fingerprint
from kgrag_assets.schemas.scaffold import make_task
from kgrag_assets.schemas.task_folder import load_task
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks

pytestmark = pytest.mark.postgres

PASSWORD = "s3cret-pa55"
VARIABLE = "CLINIC_DATABASE"

SETUP = """
CREATE TABLE person (id integer PRIMARY KEY, "na""me.x" varchar(20) NOT NULL, born date, photo bytea, extra jsonb);
COMMENT ON TABLE person IS 'all people';
COMMENT ON COLUMN person."na""me.x" IS 'how they''re called';
INSERT INTO person VALUES (1, '007', '2020-01-02', 'x', '{}'), (2, 'b', NULL, 'y', NULL), (3, 'b', NULL, NULL, NULL),
 (4, '%s', NULL, NULL, NULL);
CREATE TABLE visit (id bigint PRIMARY KEY, person integer REFERENCES person(id), gone text) PARTITION BY RANGE (id);
CREATE TABLE visit_1 PARTITION OF visit FOR VALUES FROM (0) TO (100);
ALTER TABLE visit DROP COLUMN gone;
CREATE SCHEMA other;
CREATE TABLE other.visit (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE other.bill (y int, x int, FOREIGN KEY (x, y) REFERENCES other.visit (a, b));
CREATE VIEW names AS SELECT "na""me.x" AS n FROM person;
CREATE VIEW broken AS SELECT 1 / (id - id) AS z FROM person;
CREATE TABLE closed (word text);
CREATE ROLE reader LOGIN PASSWORD '{password}';
GRANT USAGE ON SCHEMA public, other TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public, other TO reader;
REVOKE ALL ON closed FROM reader;
""".replace("{password}", PASSWORD)


def _programs() -> Path:
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("PostgreSQL's programs initdb and postgres are not on this machine")


def _user() -> str | None:
    """Name a user to run the server as, where we are root: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with a password on loopback; yield the owner's connection string without it."""
    programs, user = _programs(), _user()
    # Not in pytest's own folder: that one is closed to other users.
    with tempfile.TemporaryDirectory(prefix="kgrag-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if user is not None:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        data = folder / "data"
        subprocess.run(
            [
                programs / "initdb",
                f"--pgdata={data}",
                "--username=owner",
                "--auth=scram-sha-256",
                f"--pwfile={folder / 'password'}",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            user=user,
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    programs / "postgres",
                    "-D",
                    data,
                    "-p",
                    str(port),
                    "-c",
                    "listen_addresses=127.0.0.1",
                    "-c",
                    "unix_socket_directories=",
                    "-c",
                    "fsync=off",
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
                user=user,
            )
        address = f"host=127.0.0.1 port={port} dbname=postgres"
        try:
            _wait(process, f"{address} user=owner password={PASSWORD}", folder / "log")
            with psycopg.connect(f"{address} user=owner password={PASSWORD}", autocommit=True) as con:
                con.execute(SETUP.encode())
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], string: str, log: Path) -> None:
    for _ in range(200):
        try:
            psycopg.connect(string).close()
        except psycopg.OperationalError:
            if process.poll() is not None:
                pytest.fail(f"the server ended: {log.read_text()[-500:]}")
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"the server does not answer: {log.read_text()[-500:]}")


@pytest.fixture
def live(tasks: Tasks, server: str, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    """Make a task whose source is the live database, read by a user with few rights."""
    monkeypatch.setenv(VARIABLE, f"{server} user=reader password={PASSWORD}")
    tasks.put(target_csv=GOOD, task_yaml=f"source: {{connection_env: {VARIABLE}}}")
    return tasks


def row(tasks: Tasks, table: str, column: str) -> dict[str, object]:
    frame = tasks.read().attributes
    return frame.row(by_predicate=(pl.col("table_name") == table) & (pl.col("column_name") == column), named=True)


def test_columns_keys_comments_and_values(live: Tasks) -> None:
    assert live.names() == [
        ("other.bill", "y"),
        ("other.bill", "x"),
        ("other.visit", "a"),
        ("other.visit", "b"),
        ("broken", "z"),
        ("closed", "word"),
        ("names", "n"),
        ("person", "id"),
        ("person", 'na"me.x'),
        ("person", "born"),
        ("person", "photo"),
        ("person", "extra"),
        ("visit", "id"),
        ("visit", "person"),
    ]
    name = row(live, "person", 'na"me.x')
    assert (name["data_type"], name["type_family"], name["nullable"]) == ("character varying(20)", "text", False)
    assert (name["table_description"], name["column_description"]) == ("all people", "how they're called")
    assert (name["sample_values"], name["distinct_count"], name["null_share"]) == (["b", "%s", "007"], 3, 0.0)
    assert (row(live, "person", "born")["sample_values"], row(live, "person", "born")["null_share"]) == (
        ["2020-01-02"],
        0.75,
    )
    assert (row(live, "person", "photo")["sample_values"], row(live, "person", "photo")["distinct_count"]) == ([], 2)
    assert row(live, "person", "id")["is_primary_key"] is True
    foreign = row(live, "visit", "person")
    assert (foreign["references_table"], foreign["references_column"]) == ("person", "id")
    second = row(live, "other.bill", "x")
    assert (second["references_table"], second["references_column"]) == ("other.visit", "a")
    assert set(live.read().attributes["origin"]) == {VARIABLE, "target.csv"}


def test_what_cannot_be_read_is_kept_without_values_and_told(live: Tasks) -> None:
    rejects = {r["file"]: r["reason"] for r in live.read().rejects.iter_rows(named=True)}
    assert sorted(rejects) == [f"{VARIABLE}#broken", f"{VARIABLE}#closed"]
    assert "division by zero" in rejects[f"{VARIABLE}#broken"]
    assert "not allowed" in rejects[f"{VARIABLE}#closed"]
    assert row(live, "closed", "word")["sample_values"] == []


def test_schema_and_tables_are_filters(live: Tasks) -> None:
    live.put(task_yaml=f"source: {{connection_env: {VARIABLE}, schema: other, tables: [bill]}}")
    assert live.names() == [("bill", "y"), ("bill", "x")]
    live.put(task_yaml=f"source: {{connection_env: {VARIABLE}, schema: nowhere}}")
    with pytest.raises(SchemaError, match="the schema 'nowhere' has no table"):
        live.read()


def test_reading_changes_nothing_and_is_the_same_each_time(live: Tasks) -> None:
    assert live.read().attributes.equals(live.read().attributes)


def test_the_fingerprint_follows_the_schema_and_not_the_values(live: Tasks, server: str) -> None:
    def now() -> str:
        return schema_fingerprint(load_task(live.paths, "t"))

    before = now()
    with psycopg.connect(f"{server} user=owner password={PASSWORD}", autocommit=True) as con:
        con.execute("INSERT INTO visit VALUES (1, 1)")
        assert now() == before
        con.execute("COMMENT ON COLUMN visit.id IS 'number'")
        assert now() != before
        con.execute("COMMENT ON COLUMN visit.id IS NULL; DELETE FROM visit")
    assert now() == before


def test_init_with_a_live_database(live: Tasks, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(GOOD)
    folder = make_task(live.paths, "made", f"pg:{VARIABLE}", str(tmp_path / "x.csv"))
    assert PASSWORD not in (folder / "task.yaml").read_text()
    assert ("person", "id") in live.names("source", "made")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("user=reader", "user=reader2"), "password is refused"),
        ((PASSWORD, "wrong-" + PASSWORD), "password is refused"),
        (("dbname=postgres", "dbname=nothing"), "no such database"),
        (("host=127.0.0.1 ", "host=127.0.0.1 hostaddr=127.0.0.2 "), "nothing listens|cannot be reached"),
        (("host=127.0.0.1 ", f"hostaddr={PASSWORD} "), "host is not known|cannot be reached"),
        (("user=", f"{PASSWORD} user="), "does not hold a PostgreSQL connection string"),
    ],
)
def test_no_error_repeats_the_connection_string(
    live: Tasks, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], message: str
) -> None:
    monkeypatch.setenv(VARIABLE, os.environ[VARIABLE].replace(*change))
    with pytest.raises(SchemaError, match=message) as caught:
        live.read()
    told = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in told
    assert VARIABLE in str(caught.value)
