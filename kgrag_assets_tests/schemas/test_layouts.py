"""Layouts of others: OMOP CDM field-level CSV, OMAP benchmark sheets, WhiteRabbit scan reports."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.readers.omap import split_names
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks
from kgrag_assets_tests.schemas.test_workbooks import write

FIELDS = '''\
cdmTableName,cdmFieldName,isRequired,cdmDatatype,userGuidance,etlConventions,isPrimaryKey,isForeignKey,fkTableName,fkFieldName
person,person_id,Yes,integer,One per<br><br>person.,NA,Yes,No,NA,NA
person,gender_concept_id,No,integer,NA,Use the code.,No,Yes,CONCEPT,CONCEPT_ID
person,"""offset""",No,varchar(50),NA,NA,No,No,NA,NA
concept,concept_id,Yes,integer,,,Yes,No,,
NA,NA,No,integer,,,No,No,,
,lost,No,integer,,,No,No,,
'''
TABLES = "cdmTableName,schema,tableDescription\nPERSON,CDM,All people.\nconcept,VOCAB,NA\n"


def rows(tasks: Tasks, side: str) -> dict[str, dict[str, object]]:
    frame = tasks.read().attributes.filter(pl.col("side") == side)
    return {f"{row['table_name']}.{row['column_name']}": row for row in frame.iter_rows(named=True)}


@pytest.mark.parametrize("with_tables", [False, True])
def test_omop_field_level(tasks: Tasks, with_tables: bool) -> None:
    tasks.put(source_csv=GOOD, target_csv=FIELDS, **({"target_tables_csv": TABLES} if with_tables else {}))
    found = rows(tasks, "target")
    assert list(found) == [
        "person.person_id",
        "person.gender_concept_id",
        "person.offset",
        "concept.concept_id",
        "NA.NA",
    ]
    key, gender = found["person.person_id"], found["person.gender_concept_id"]
    assert (key["is_primary_key"], key["nullable"], key["column_description"]) == (True, False, "One per person.")
    assert (gender["references_table"], gender["references_column"]) == ("concept", "concept_id")
    assert gender["column_description"] == "Use the code."
    assert key["table_description"] == ("All people." if with_tables else "")
    assert tasks.read().rejects.select("file", "row").rows() == [("target.csv", 7)]


def test_the_real_omop_cdm(tasks: Tasks, shared_data: Path) -> None:
    folder = shared_data / "omop_cdm"
    tasks.put(
        source_csv=GOOD,
        target_csv=(folder / "OMOP_CDMv5.4_Field_Level.csv").read_bytes(),
        target_tables_csv=(folder / "OMOP_CDMv5.4_Table_Level.csv").read_bytes(),
    )
    found = rows(tasks, "target")
    assert len(found) == 432
    assert len({row["table_name"] for row in found.values()}) == 39
    assert tasks.read().rejects.height == 0
    assert all(row["type_family"] != "unknown" for row in found.values())
    named = {row["references_table"] for row in found.values() if row["references_table"]}
    assert named <= {row["table_name"] for row in found.values()}
    assert all(row["table_description"] for row in found.values())


OMAP_HEADER = ["omop", "table", "des1", "des2", "label", "d1", "d2", "d3", "d4"]
PERSON, ID, SUMMARY = "the person domain", "unique identifier", "a synthetic beneficiary"


def pair(omop: str, table: str, label: object, d2: str = ID, d4: str = "code") -> list[object]:
    return [omop, table, f"{PERSON};{d2}", f"{SUMMARY};{d4}", label, PERSON, d2, SUMMARY, d4]


def test_omap_sheet_gives_both_schemas_and_the_reference(tasks: Tasks) -> None:
    folder = tasks.put()
    data = [
        OMAP_HEADER,
        pair("person-person_id", "summary-id", 1),
        pair("person-person_id", "summary-born", 0, d4="date of birth"),
        pair("person-year", "summary-id", 0.0, d2="year"),
        pair("person-year", "summary-born", "1", d2="year", d4="date of birth"),
        pair("person-year", "summary-born", 1, d2="year", d4="date of birth"),
        pair("person-year", "summary-id", 1, d2="year"),
        pair("person", "summary-id", 1),
        pair("person-year", "summary-id", "maybe"),
    ]
    write(folder / "sheet.xlsx", {"data": data})
    read = tasks.read()
    assert tasks.names("source") == [("summary", "id"), ("summary", "born")]
    assert tasks.names("target") == [("person", "person_id"), ("person", "year")]
    target = rows(tasks, "target")["person.year"]
    assert (target["table_description"], target["column_description"]) == (PERSON, "year")
    assert rows(tasks, "source")["summary.born"]["column_description"] == "date of birth"
    names = ["source_table", "source_column", "target_table", "target_column"]
    assert read.reference.select(names).rows() == [
        ("summary", "id", "person", "person_id"),
        ("summary", "born", "person", "year"),
    ]
    rejects = {row["row"]: row["reason"] for row in read.rejects.iter_rows(named=True)}
    assert sorted(rejects) == [7, 8, 9]
    assert "other label" in rejects[7]
    assert "joined by '-'" in rejects[8]
    assert "0 or 1" in rejects[9]


@pytest.mark.parametrize("task", ["imdb_to_sakila", "cms_to_omop"])
def test_a_real_task_written_as_an_omap_sheet_reads_the_same(tasks: Tasks, shared_data: Path, task: str) -> None:
    shutil.copytree(shared_data / "tasks" / task, tasks.paths.tasks / "plain")
    plain = tasks.read("plain")
    kept = ["table_name", "column_name", "table_description", "column_description"]
    source, target = (
        plain.attributes.filter(pl.col("side") == side).select(kept).rows() for side in ("source", "target")
    )
    true = set(plain.reference.select("source_table", "source_column", "target_table", "target_column").rows())
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(OMAP_HEADER)
    for t in target:
        for s in source:
            label = int((*s[:2], *t[:2]) in true)
            writer.writerow([f"{t[0]}-{t[1]}", f"{s[0]}-{s[1]}", "", "", label, t[2], t[3], s[2], s[3]])
    tasks.put("sheet", sheet_csv=out.getvalue())
    read = tasks.read("sheet")
    assert read.rejects.height == 0
    assert read.attributes.filter(pl.col("side") == "source").select(kept).rows() == source
    assert read.attributes.filter(pl.col("side") == "target").select(kept).rows() == target
    assert set(read.reference["pair_id"]) == set(plain.reference["pair_id"])


def test_omap_as_csv_with_joined_descriptions_only(tasks: Tasks) -> None:
    text = "omop,table,des1,des2,label\na-b,c-d,T one;C one,only one text,1\n"
    tasks.put(sheet_csv=text)
    target, source = rows(tasks, "target")["a.b"], rows(tasks, "source")["c.d"]
    assert (target["table_description"], target["column_description"]) == ("T one", "C one")
    assert (source["table_description"], source["column_description"]) == ("", "only one text")


def test_omap_without_a_usable_row_is_an_error(tasks: Tasks) -> None:
    tasks.put(sheet_csv="omop,table,label\na-b,c-d,\n")
    with pytest.raises(SchemaError, match=r"no usable row.*0 or 1"):
        tasks.read()


def test_names_with_several_hyphens_part_at_a_known_table_or_the_last_hyphen() -> None:
    names = ["a-b", "lab-tests-x-y", "lab-tests-z", "p-q-r", "p-s"]
    assert split_names(names) == {
        "a-b": ("a", "b"),
        "lab-tests-x-y": ("lab-tests-x", "y"),
        "lab-tests-z": ("lab-tests", "z"),
        "p-q-r": ("p", "q-r"),
        "p-s": ("p", "s"),
    }


_PART = st.text("abc_ .é", min_size=1).filter(lambda text: bool(text.strip()) and text == text.strip())


@given(st.lists(st.tuples(_PART, _PART)))
def test_names_with_one_hyphen_are_parted_there(names: list[tuple[str, str]]) -> None:
    joined = {f"{table}-{column}": (table, column) for table, column in names}
    assert split_names(joined) == joined


OVERVIEW = [
    "Table",
    "Field",
    "Description",
    "Type",
    "Max length",
    "N rows",
    "N rows checked",
    "Fraction empty",
    "N unique values",
    "Fraction unique",
]
LONG = "measurements_of_the_intensive_care_unit"  # 39 characters


def report(folder: Path, tables: list[str]) -> None:
    overview: list[list[object]] = [OVERVIEW]
    sheets: dict[str, list[list[object]]] = {}
    for number, table in enumerate(tables):
        overview += [
            [table, "id", "number", "INT", 4, 100, 100, 0.0, 100, 1.0],
            [table, "sex", "", "VARCHAR", 1, 100, 100, 0.25, "<= 3", "<= 0.1"],
            [table, "note", "free", "TEXT", 90, 100, 100, 0.5, 7, 0.07],
            [""],
        ]
        name = table[:31].replace("/", "_")
        sheets[name] = [
            ["id", "Frequency", "sex", "Frequency", "note", "Word count"],
            ["00" + str(number), 1, "M", 20, "the", 9],
            ["List truncated...", "", "F", 55, "a", 8],
            ["", "", "", 25, "", ""],
        ]
    about = [["Table", "Description"], *[[table, f"about {table}"] for table in tables]]
    meta: dict[str, list[list[object]]] = {"_": [["Key", "Value"]]}
    write(folder / "source.xlsx", {"Field Overview": overview, "Table Overview": about, **sheets, **meta})


def test_white_rabbit_report(tasks: Tasks) -> None:
    report(tasks.put(target_csv=GOOD), ["person", "a/b"])
    found = rows(tasks, "source")
    assert list(found) == ["person.id", "person.sex", "person.note", "a/b.id", "a/b.sex", "a/b.note"]
    key, sex, note = (found[f"person.{name}"] for name in ("id", "sex", "note"))
    assert (key["sample_values"], key["distinct_count"], key["null_share"]) == (["000"], 100, 0.0)
    assert (key["column_description"], key["table_description"]) == ("number", "about person")
    assert (sex["sample_values"], sex["distinct_count"], sex["null_share"]) == (["F", "M"], None, 0.25)
    assert (note["sample_values"], note["type_family"], note["profile"]) == ([], "text", None)
    assert sex["profile"]["patterns"] == [{"pattern": "A", "share": 1.0}]
    assert found["a/b.id"]["sample_values"] == ["001"]
    assert tasks.read().rejects.height == 0


def test_white_rabbit_numbers_long_names_and_cuts_sheets(tasks: Tasks) -> None:
    report(tasks.put(target_csv=GOOD), ["person", f"0_{LONG}_a", f"1_{LONG}_b"])
    found = rows(tasks, "source")
    assert {name.split(".")[0] for name in found} == {"person", f"{LONG}_a", f"{LONG}_b"}
    assert found[f"{LONG}_b.id"]["sample_values"] == ["002"]
    assert found[f"{LONG}_b.id"]["table_description"] == f"about 1_{LONG}_b"


def test_white_rabbit_tables_that_share_a_sheet_name_lose_values_only(tasks: Tasks) -> None:
    report(tasks.put(target_csv=GOOD), [f"{LONG}_a", f"{LONG}_b"])
    found = rows(tasks, "source")
    assert len(found) == 6
    assert all(row["sample_values"] == [] for row in found.values())
    (reject,) = tasks.read().rejects.iter_rows(named=True)
    assert reject["file"] == f"source.xlsx#{LONG[:31]}"
    assert "2 tables share" in reject["reason"]


def test_white_rabbit_report_without_a_scan_of_values(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    write(folder / "source.xlsx", {"Field Overview": [OVERVIEW[:6], ["t", "c", None, "INT", 4, 0], ["t", None]]})
    found = rows(tasks, "source")["t.c"]
    assert (found["sample_values"], found["distinct_count"], found["null_share"]) == ([], None, None)
    assert tasks.read().rejects["row"].to_list() == [3]


@pytest.mark.parametrize("figure", ["NaN", "inf", "many", "-3", "<= 5", ""])
def test_white_rabbit_figures_that_are_none(tasks: Tasks, figure: str) -> None:
    folder = tasks.put(target_csv=GOOD)
    write(folder / "source.xlsx", {"Field Overview": [OVERVIEW, ["t", "c", "", "INT", 4, 9, 9, figure, figure, ""]]})
    found = rows(tasks, "source")["t.c"]
    assert (found["distinct_count"], found["null_share"]) == (None, None)
