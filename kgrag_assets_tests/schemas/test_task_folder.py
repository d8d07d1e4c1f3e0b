"""Task folders: names, what is found in them, task.yaml, links and paths that leave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.task_folder import ListedTask, list_tasks, load_task
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "a/b", "../t", "a\\b", ".hidden", " t", "t ", "a...b", "a,b", "x" * 81, "a\nb", "/t", "t\x00"],
)
def test_a_name_that_is_no_folder_name_is_refused(tasks: Tasks, name: str) -> None:
    tasks.put(source_csv=GOOD, target_csv=GOOD)
    with pytest.raises(SchemaError, match="cannot be a task"):
        load_task(tasks.paths, name)


@pytest.mark.parametrize("name", ["with spaces in it", "ünï😀", "a.b", "'; DROP TABLE x; --", "100%"])
def test_odd_but_possible_names(tasks: Tasks, name: str) -> None:
    tasks.put(name, source_csv=GOOD, target_csv=GOOD)
    assert list_tasks(tasks.paths) == [ListedTask(name, None)]
    assert set(tasks.read(name).attributes["task"]) == {name}


def test_every_folder_is_listed_with_its_problem(tasks: Tasks) -> None:
    tasks.put("good", source_csv=GOOD, target_csv=GOOD)
    tasks.put("empty")
    tasks.put("no target", source_csv=GOOD, readme_md="x")
    tasks.put("two sources", source_csv=GOOD, source_tsv=GOOD, target_csv=GOOD)
    tasks.put(".hidden", source_csv=GOOD, target_csv=GOOD)
    tasks.put(".new-task-x", source_csv=GOOD)
    tasks.put("bad yaml", source_csv=GOOD, target_csv=GOOD, task_yaml="title: [")
    (tasks.paths.tasks / "a file").write_text("x")
    (tasks.put("outer") / "inner").mkdir()
    listed = {listed.name: listed.problem for listed in list_tasks(tasks.paths)}
    assert list(listed) == [".hidden", "bad yaml", "empty", "good", "no target", "outer", "two sources"]
    wanted = {
        ".hidden": "begin with a dot",
        "bad yaml": "line 1: is not valid YAML",
        "empty": "no source.*folder is empty",
        "no target": "no target.*found readme.md, source.csv",
        "outer": "no source.*found inner",
        "two sources": r"2 inputs for source \(source.csv, source.tsv\)",
    }
    assert listed.pop("good") is None
    for name, pattern in wanted.items():
        with pytest.raises(AssertionError, match=pattern):
            raise AssertionError(listed[name])


def test_a_lake_without_tasks_lists_none(tasks: Tasks) -> None:
    tasks.paths.tasks.rmdir()
    assert list_tasks(tasks.paths) == []
    with pytest.raises(SchemaError, match="there is no task 'x'"):
        load_task(tasks.paths, "x")


def test_task_yaml_is_read(tasks: Tasks) -> None:
    tasks.put(
        task_yaml="title: Ours\noptions: {mapping: {cardinality: '1:1'}}\nreference: truth/r.csv\n"
        "source: {path: data/s.csv, format: schema}\ntarget: {connection_env: SOME_DB, schema: clinic}\n"
    )
    for path in ("data/s.csv", "truth/r.csv"):
        (tasks.paths.tasks / "t" / path).parent.mkdir()
        (tasks.paths.tasks / "t" / path).write_text(GOOD)
    folder = load_task(tasks.paths, "t")
    assert (folder.title, folder.options) == ("Ours", {"mapping": {"cardinality": "1:1"}})
    assert folder.source is not None
    assert (folder.source.path, folder.source.shown) == (folder.path / "data/s.csv", "data/s.csv")
    assert folder.target is not None
    assert (folder.target.connection_env, folder.target.schema, folder.target.path) == ("SOME_DB", "clinic", None)
    assert folder.reference == folder.path / "truth/r.csv"


def test_the_title_is_the_name_without_task_yaml(tasks: Tasks) -> None:
    tasks.put("my task", source_csv=GOOD, target_csv=GOOD, task_yaml="# nothing yet\n")
    folder = load_task(tasks.paths, "my task")
    assert (folder.title, folder.options, folder.reference, folder.sheet) == ("my task", {}, None, None)


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("titel: x", "unknown key 'titel'"),
        ("- a", "must be a mapping"),
        ("title: 7", "must be a text; found 7"),
        ("options: [1]", "options: must be a mapping"),
        ("options: {1: x}", "options: must be a mapping"),
        ("source: source.csv", "source: must be a mapping"),
        ("source: {file: x}", "source: unknown key 'file'"),
        ("source: {path: a.csv, builtin: b}", "has builtin and path"),
        ("source: {path: nope.csv}", "there is no 'nope.csv'"),
        ("source: {path: ../other/source.csv}", "must be a path inside"),
        ("source: {path: /etc/hostname}", "must be a path inside"),
        ("source: {path: 'a\\..\\b'}", "must be a path inside"),
        ("reference: ../r.csv", "must be a path inside"),
        ("sheet: ../r.csv", "must be a path inside"),
        ("source: {path: source.csv, format: cobol}", "'cobol' is not a format"),
        ("source: {tables: person}", "must be a list of names"),
        ("source: {tables: [null, yes]}", "must be a text; found None"),
        ("source: {tables: [007]}", "must be a text; found 7"),
        ("source: {schema: public}", "goes with connection_env only"),
        ("target: {builtin: nope}", "there is no 'nope': use one of"),
        ("source: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("a: &a [x]\nb: *c", "not valid YAML"),
        ("\x07", "not valid YAML"),
    ],
)
def test_what_task_yaml_may_not_say(tasks: Tasks, yaml: str, message: str) -> None:
    tasks.put("other", source_csv=GOOD)
    tasks.put(source_csv=GOOD, target_csv=GOOD, task_yaml=yaml)
    with pytest.raises(SchemaError, match=r"task\.yaml") as caught:
        load_task(tasks.paths, "t")
    assert message in str(caught.value)


def test_a_connection_string_in_place_of_a_variable_is_not_repeated(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD, task_yaml="target: {connection_env: 'postgresql://u:s3cret@h/d'}")
    with pytest.raises(SchemaError, match="name of an environment variable") as caught:
        load_task(tasks.paths, "t")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("link", ["source.csv", "task.yaml", "reference.csv", "source"])
def test_a_link_that_leaves_the_folder_is_refused(tasks: Tasks, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text(GOOD)
    files = {"target_csv": GOOD} if link.startswith("source") else {"source_csv": GOOD, "target_csv": GOOD}
    folder = tasks.put(**files)
    if link == "source":
        (folder / link).mkdir()
        (folder / link / "t.csv").symlink_to(outside / "secret.csv")
    else:
        (folder / link).symlink_to(outside / "secret.csv")
    with pytest.raises(SchemaError, match="leaves the task's folder"):
        load_task(tasks.paths, "t")


def test_a_link_within_the_folder_and_a_linked_folder_are_fine(tasks: Tasks, tmp_path: Path) -> None:
    folder = tasks.put(target_csv=GOOD)
    (folder / "source.csv").symlink_to("target.csv")
    assert tasks.names() == [("t", "c")]
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert tasks.names() == [("t", "c")]


def test_a_sheet_stands_for_both_sides_alone(tasks: Tasks) -> None:
    tasks.put(sheet_csv="omop,table,label\na-b,c-d,1\n")
    folder = load_task(tasks.paths, "t")
    assert (folder.source, folder.target, folder.sheet) == (None, None, folder.path / "sheet.csv")
    tasks.put(reference_csv="x")
    with pytest.raises(SchemaError, match=r"gives the reference, but there is also reference\.csv"):
        load_task(tasks.paths, "t")
    tasks.put(source_csv=GOOD)
    with pytest.raises(SchemaError, match=r"gives both sides, but there is also source\.csv"):
        load_task(tasks.paths, "t")


def test_endings_are_read_in_any_case(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    (folder / "Source.CSV").write_text(GOOD)
    assert tasks.names() == [("t", "c")]


def test_an_xls_file_is_taken_so_that_it_can_be_explained(tasks: Tasks) -> None:
    tasks.put(source_xls=b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", target_csv=GOOD)
    with pytest.raises(SchemaError, match=r"save it as \.xlsx"):
        tasks.read()
