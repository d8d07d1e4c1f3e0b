"""Reading the file of entity links: what is taken, and what each rejected row is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.fingerprint import schema_fingerprint
from kgrag_assets.schemas.reading import TaskSchemas, read_task
from kgrag_assets.schemas.task_folder import load_folder

HEADER = "side,table,column,entity_id,label\n"


def read(tmp_path: Path, links: str) -> TaskSchemas:
    (tmp_path / "source.csv").write_text("table,column\npat,dob\npat,Sex\n")
    (tmp_path / "target.csv").write_text("table,column\nperson,year_of_birth\n")
    (tmp_path / "entity_links.csv").write_text(links)
    return read_task(load_folder("clinic", tmp_path))


def test_links_are_resolved_to_attributes(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        HEADER + "source,pat,dob,wd:P569,date of birth\nSOURCE,PAT,sex,wd:P21,\ntarget,person,year_of_birth,wd:P569,\n",
    )
    assert found.rejects.is_empty()
    rows = found.entity_links.select("side", "table_name", "column_name", "entity_id", "label").rows()
    assert rows == [
        ("source", "pat", "dob", "wd:P569", "date of birth"),
        ("source", "pat", "Sex", "wd:P21", ""),
        ("target", "person", "year_of_birth", "wd:P569", ""),
    ]
    known = dict(found.attributes.select("attribute_id", "column_name").iter_rows())
    assert [known[row] for row in found.entity_links["attribute_id"]] == ["dob", "Sex", "year_of_birth"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("middle,pat,dob,wd:P569,", "write source or target"),
        ("source,pat,dod,wd:P570,", "did you mean pat.dob"),
        ("source,pat,dob,P569,", "such as wd:Q42"),
        ("source,pat,,wd:P569,", "column is missing"),
        ("source,pat,dob,wd:P569", "4 fields where"),
        ("source,pat,dob,wd:P1,once", "the same link stands above"),
    ],
)
def test_a_bad_row_is_rejected_and_the_good_ones_stay(tmp_path: Path, row: str, said: str) -> None:
    found = read(tmp_path, f"{HEADER}source,pat,dob,wd:P1,\n{row}\n")
    assert found.entity_links.height == 1
    assert found.rejects["file"].to_list() == ["entity_links.csv"]
    assert found.rejects["row"].to_list() == [3]
    assert said in found.rejects["reason"][0]


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"entity_links\.csv: the first row must name"):
        read(tmp_path, "table,column\npat,dob\n")


def test_no_file_means_no_links_and_a_new_file_is_noticed(tmp_path: Path) -> None:
    read(tmp_path, HEADER + "source,pat,dob,wd:P569,\n")
    with_file = schema_fingerprint(load_folder("clinic", tmp_path))
    (tmp_path / "entity_links.csv").unlink()
    folder = load_folder("clinic", tmp_path)
    assert schema_fingerprint(folder) != with_file
    assert read_task(folder).entity_links.is_empty()
