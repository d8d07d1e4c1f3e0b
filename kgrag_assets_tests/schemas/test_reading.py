"""Whole tasks: the three real ones, references that do not fit, filters, tables that conform."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.rows.keys import attribute_id_of, pair_id_of
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks

REFERENCE = "source_table,source_column,target_table,target_column\n"
NAMES = ["source_table", "source_column", "target_table", "target_column"]


@pytest.mark.parametrize(
    ("task", "source", "target", "pairs"),
    [("mimic_iv_to_omop", 66, 113, 49), ("cms_to_omop", 96, 240, 170), ("imdb_to_sakila", 39, 60, 50)],
)
def test_the_real_tasks_are_read_whole(
    tasks: Tasks, shared_data: Path, task: str, source: int, target: int, pairs: int
) -> None:
    shutil.copytree(shared_data / "tasks" / task, tasks.paths.tasks / task)
    read = tasks.read(task)
    assert read.attributes["side"].value_counts().sort("side").rows() == [("source", source), ("target", target)]
    assert read.reference.height == pairs
    assert read.rejects.height == 0


def test_the_frames_conform_and_carry_the_ids(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD + "t,d\nt\n", target_csv=GOOD, reference_csv=REFERENCE + "t,d,t,c\n")
    read = tasks.read()
    for frame, table in (
        (read.attributes, SCHEMA_ATTRIBUTES),
        (read.reference, REFERENCE_CORRESPONDENCES),
        (read.rejects, SCHEMA_REJECTS),
    ):
        assert table.conform(frame).equals(frame)
        assert frame.height > 0
        assert set(frame["task"]) == {"t"}
    assert read.attributes.select("side", "position").rows() == [("source", 0), ("source", 1), ("target", 0)]
    source, target = attribute_id_of("source", "t", "d"), attribute_id_of("target", "t", "c")
    assert read.reference["pair_id"].to_list() == [pair_id_of(source, target)]
    assert set(attributes_of(read.attributes)) == {attribute_id_of("source", "t", "c"), source, target}


def test_without_reference_and_rejects_the_frames_are_empty_tables(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD, target_csv=GOOD)
    read = tasks.read()
    assert read.reference.schema == REFERENCE_CORRESPONDENCES.schema
    assert read.rejects.schema == SCHEMA_REJECTS.schema
    assert read.reference.height == read.rejects.height == 0


def test_equal_input_gives_equal_row_keys_and_an_edit_changes_one(tasks: Tasks) -> None:
    text = "table,column,column_description\nt,a,x\nt,b,y\n"
    tasks.put(source_csv=text, target_csv=GOOD)
    first = set(tasks.read().attributes["row_key"])
    assert set(tasks.read().attributes["row_key"]) == first
    tasks.put(source_csv=text.replace("y", "z"))
    assert len(first & set(tasks.read().attributes["row_key"])) == 2


def test_references_that_do_not_fit_are_rejected_with_row_and_reason(tasks: Tasks) -> None:
    tasks.put(
        source_csv="table,column\nPerson,id\nPerson,name\nPerson,NAME\nNA,null\n",
        target_csv="table,column\nperson,person_id\n",
        reference_csv=REFERENCE
        + "Person,id,person,person_id\n"  # 2 exact
        + "person, ID ,PERSON,Person_Id\n"  # 3 the same, by case: stands there already
        + "person,name,person,person_id\n"  # 4 two columns differ in case only
        + "Person,name,person,person_id\n"  # 5 exact among them
        + "Person,idd,person,person_id\n"  # 6 no such column, one near
        + "Person,id,nowhere,x\n"  # 7 no such target
        + "Person,id,,\n"  # 8 missing
        + "Person,id,person\n"  # 9 too short
        + "na,NULL,person,person_id\n",  # 10 by case
    )
    read = tasks.read()
    assert read.reference.select(NAMES).rows() == [
        ("Person", "id", "person", "person_id"),
        ("Person", "name", "person", "person_id"),
        ("NA", "null", "person", "person_id"),
    ]
    rejects = {row["row"]: row["reason"] for row in read.rejects.iter_rows(named=True)}
    assert sorted(rejects) == [3, 4, 6, 7, 8, 9]
    assert "stands in row 2 of reference.csv" in rejects[3]
    assert "differ from person.name in case only" in rejects[4]
    assert "no column Person.idd: did you mean Person.id?" in rejects[6]
    assert "the target has no column nowhere.x" in rejects[7]
    assert "target_table is missing" in rejects[8]
    assert "3 fields where the header has 4" in rejects[9]


def test_a_reference_with_another_header_is_an_error(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD, target_csv=GOOD, reference_csv="source,target\nt.c,t.c\n")
    with pytest.raises(SchemaError, match=r"reference\.csv: the first row must name the columns source_table"):
        tasks.read()


def test_the_filter_on_tables_keeps_those_only(tasks: Tasks) -> None:
    tasks.put(
        source_csv="table,column\na,x\nb,y\nNA,z\n",
        target_csv=GOOD,
        task_yaml='source:\n  tables: [a, "NA", nowhere]\n',
        reference_csv=REFERENCE + "a,x,t,c\nb,y,t,c\n",
    )
    read = tasks.read()
    assert tasks.names() == [("a", "x"), ("NA", "z")]
    assert read.reference.height == 1
    assert sorted(read.rejects["reason"]) == [
        "source.tables: source.csv has no such table: correct the name",
        "the table of source column b.y is left out by 'tables' in task.yaml",
    ]
    tasks.put(task_yaml="source:\n  tables: [A]\n")
    with pytest.raises(SchemaError, match=r"none of A is in source\.csv; it has NA, a, b"):
        tasks.read()


def test_a_side_without_a_usable_row_is_an_error_that_says_the_first_reason(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD, target_csv="table,column\nt\n,c\n")
    with pytest.raises(SchemaError, match=r"target\.csv.*no usable row.*1 fields where the header has 2"):
        tasks.read()


def test_a_built_in_target(tasks: Tasks) -> None:
    tasks.put(source_csv=GOOD, task_yaml="target: {builtin: omop-5.4, tables: [person]}")
    attributes = tasks.read().attributes.filter(pl.col("side") == "target")
    assert set(attributes["table_name"]) == {"person"}
    assert set(attributes["origin"]) == {"builtin:omop-5.4"}
