"""The lake: whole files or none, nothing written twice, nothing lost to a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.lake.files import LakeError, replace_file, replace_folder, sweep
from kgrag_assets.lake.lake import Lake, difference
from kgrag_assets.lake.locks import locked
from kgrag_assets.lake.paths import LakePaths, name_problem
from kgrag_assets.rows.pairs import ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

NOTES = Table("notes", "Notes.", (Column("note", pl.String, "Text."), ROW_KEY_COLUMN))


def notes(*keys: str) -> pl.DataFrame:
    return NOTES.frame([{"note": f"note {key}", "row_key": key} for key in keys])


def test_the_same_rows_are_not_written_twice(lake: Lake) -> None:
    first = lake.write(NOTES, "t", notes("a", "b"))
    stamp = first.path.stat().st_mtime_ns
    again = lake.write(NOTES, "t", notes("b", "a"))
    assert (first.changed, again.changed) == (True, False)
    assert again.path.stat().st_mtime_ns == stamp
    assert again.data_version == first.data_version


@pytest.mark.parametrize("name", ["a b", "ä/../x", "..", "%2e", "=1+1", "naïve 😀", "a.b"])
def test_a_partition_named_oddly_stays_inside_its_stage(lake: Lake, name: str) -> None:
    written = lake.write(NOTES, name, notes("a"))
    assert written.path.resolve().is_relative_to(lake.paths.stage("notes").resolve())
    assert lake.partitions(NOTES) == [name]
    assert lake.read(NOTES, name).height == 1


@pytest.mark.parametrize("name", ["", " a", "a/b", "..", ".x", "a\\b", "a,b", "a...b", "a\nb", "x" * 81])
def test_names_that_cannot_be_a_task_are_said_why(name: str) -> None:
    assert name_problem(name)


@pytest.mark.parametrize("name", ["a", "a b", "ä😀", "=1+1", "NA", "007", "x" * 80])
def test_odd_names_are_names(name: str) -> None:
    assert name_problem(name) is None


def test_a_damaged_file_is_named_and_a_write_replaces_it(lake: Lake) -> None:
    path = lake.write(NOTES, None, notes("a")).path
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LakeError, match=r"rows\.parquet cannot be read .*: delete it and run again"):
        lake.read(NOTES, None)
    assert lake.write(NOTES, None, notes("a")).changed
    assert lake.read(NOTES, None).height == 1


def test_a_file_of_another_version_is_named(lake: Lake) -> None:
    path = lake.write(NOTES, None, notes("a")).path
    pl.DataFrame({"other": [1]}).write_parquet(path)
    with pytest.raises(LakeError, match="written by another version"):
        lake.read(NOTES, None)


def test_parts_of_interrupted_work_are_found_and_end_with_the_write(lake: Lake) -> None:
    lake.write_part(NOTES, "t", notes("a"))
    lake.write_part(NOTES, "t", notes("b"))
    broken = lake.paths.partition("notes", "t") / "part-x.parquet"
    broken.write_bytes(b"PAR1")
    assert sorted(lake.read_parts(NOTES, "t")["row_key"]) == ["a", "b"]
    lake.write(NOTES, "t", notes("a", "b"))
    assert lake.read_parts(NOTES, "t").is_empty()


@given(st.sets(st.text(max_size=3)), st.sets(st.text(max_size=3)))
def test_the_difference_is_that_of_sets(wanted: set[str], existing: set[str]) -> None:
    found = difference(notes(*wanted), notes(*existing))
    assert set(found.kept["row_key"]) == wanted & existing
    assert set(found.missing["row_key"]) == wanted - existing
    assert found.removed == len(existing - wanted)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        replace_file(path, fail)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]


def test_a_folder_is_replaced_whole_and_an_open_reader_keeps_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    replace_folder(folder, lambda fresh: (fresh / "a").write_text("1") and None)
    with (folder / "a").open() as reader:
        replace_folder(folder, lambda fresh: (fresh / "a").write_text("2") and None)
        assert reader.read() == "1"
    assert (folder / "a").read_text() == "2"
    assert len([path for path in tmp_path.iterdir() if not path.is_symlink()]) == 1


def test_sweeping_removes_only_what_killed_writers_left(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    replace_folder(folder, lambda fresh: (fresh / "a").write_text("1") and None)
    (tmp_path / "all.killed").mkdir()
    (tmp_path / ".rows.parquet.x.tmp").write_text("")
    sweep(tmp_path)
    assert (folder / "a").read_text() == "1"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_said_and_changes_nothing(lake: Lake) -> None:
    path = lake.write(NOTES, None, notes("a")).path
    # A limit on the size of files stands in for the full disk: the system refuses the write half way.
    script = textwrap.dedent("""
        import resource, signal, sys
        import polars as pl
        from pathlib import Path
        from kgrag_assets.lake.files import LakeError
        from kgrag_assets.lake.lake import Lake
        from kgrag_assets_tests.lake.test_lake import NOTES
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        keys = [f"{i:032x}" for i in range(20000)]
        frame = pl.DataFrame({"note": keys, "row_key": keys})
        try:
            Lake.at(Path(sys.argv[1])).write(NOTES, None, frame)
        except LakeError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, str(lake.paths.root)], capture_output=True, text=True, check=True
    )
    assert "no space left to write" in done.stdout
    assert lake.read(NOTES, None)["row_key"].to_list() == ["a"]
    assert [entry.name for entry in path.parent.iterdir()] == ["rows.parquet"]


def test_a_lock_is_held_between_processes_and_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "stage@t.lock"
    script = (
        "import sys, time; from pathlib import Path; from kgrag_assets.lake.locks import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(LakeError, match=rf"stage@t is being written by another run \(process {holder.pid}\)"),
        locked(path, wait_s=0.1),
    ):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with locked(path, wait_s=5):
        assert path.read_text() == str(os.getpid())


def test_paths_are_only_names() -> None:
    paths = LakePaths(Path("x"))
    assert paths.snapshot == Path("x/kgrag.duckdb")
    assert not paths.root.exists()


def test_what_an_earlier_version_wrote_is_not_reused_and_a_damaged_file_is_told(lake: Lake) -> None:
    assert lake.reusable(NOTES, "t").is_empty()
    assert not lake.outdated(NOTES, "t")
    written = lake.write(NOTES, "t", notes("a"))
    assert lake.reusable(NOTES, "t").equals(notes("a"))
    for other in (notes("a").drop("note"), notes("a").with_columns(more=pl.lit(1))):
        other.write_parquet(written.path)
        assert lake.outdated(NOTES, "t")
        assert lake.reusable(NOTES, "t").is_empty()
    written.path.write_bytes(b"no parquet")
    with pytest.raises(LakeError, match="cannot be read"):
        lake.reusable(NOTES, "t")
