"""Exported files, read back."""

from __future__ import annotations

import csv
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.cli import workbook_file
from kgrag_assets.cli.exporting import ExportError, export_mapping, safe_file_name
from kgrag_assets.cli.task_view import ShowError
from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.cli.finished_task import PAIRS, SOURCE, TARGET, fill

ODD_SOURCE = (
    ('=HYPERLINK("http://x.example","y")', "=1+1", "int", "integer", "", "two\nlines, one\tcolumn", []),
    ("https://x.example/table", "🩺 pulse", "int", "integer", "", "[bold]loud[/bold] [/nothing]", []),
    ('quo"ted', "a,b;c", "text", "text", "", "\x1b[31mred\x1b[0m", []),
    ("NA", "null", "007", "text", "", "-5", []),
    ("@sum", "+x", "_x0041_", "text", "", "file:///etc/passwd", []),
)


def _odd(lake: Lake) -> None:
    facts = ({"head": "wd:Q1", "relation": "wd:P2", "tail": "", "text": "=cmd|' /C calc'!A0"},)
    pairs = tuple(
        (column[:2], TARGET[0][:2], 0.9 - place / 10, "proposed", 0.9, "parsed", facts)
        for place, column in enumerate(ODD_SOURCE)
    )
    fill(lake, "odd", source=ODD_SOURCE, pairs=pairs, not_matched=(), reference=False)


def _csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _sheet(path: Path, name: str) -> list[dict[str, object]]:
    workbook = openpyxl.load_workbook(path)
    titles, *rows = workbook[name].iter_rows(values_only=True)
    return [dict(zip(map(str, titles), row, strict=True)) for row in rows]


def test_csv_has_a_row_for_each_decision_with_its_evidence(lake: Lake) -> None:
    fill(lake)
    path = export_mapping(lake, "clinic", "csv", None)
    assert path == lake.paths.exports / "clinic.csv"
    rows = _csv_rows(path)
    assert [(row["source_column"], row["decision"]) for row in rows] == [
        ("pat_no", "proposed"),
        ("dob", "proposed"),
        ("sex", "proposed"),
        ("parking_permit_no", "no_match"),
        ("val.num", "proposed"),
        (SOURCE[5][1], "no_match"),
    ]
    birth = rows[1]
    assert (birth["target_table"], birth["target_column"]) == ("person", "birth_datetime")
    assert (birth["source_data_type"], birth["target_data_type"]) == ("date", "timestamp")
    assert birth["source_description"] == "Day of birth"
    assert (float(birth["score"]), float(birth["judge_score"])) == (0.88, 0.95)
    assert birth["fact_1"].startswith("human")
    assert birth["fact_1_ids"] == "Q5 P569 Q2000001"
    assert birth["fact_2"].startswith("unit of measurement")
    assert (birth["reviewed"], birth["comment"]) == ("", "")
    unmatched = rows[3]
    assert unmatched["target_column"] == unmatched["score"] == unmatched["fact_1"] == ""
    assert unmatched["reason"] == "no target scores 0.50 or more; the best has 0.45"
    assert rows[2]["judge_score"] == ""  # its judge never answered
    assert not path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_xlsx_sheets(lake: Lake) -> None:
    fill(lake)
    path = export_mapping(lake, "clinic", "xlsx", None)
    workbook = openpyxl.load_workbook(path)
    assert workbook.sheetnames == ["mapping", "alternatives", "evidence", "metrics"]
    for sheet in workbook:
        assert sheet.freeze_panes == "A2"
        assert sheet.auto_filter.ref == sheet.dimensions
    scored = {str(formatted.sqref) for formatted in workbook["mapping"].conditional_formatting}
    assert scored == {"J2:J7", "K2:K7"}
    mapping = _sheet(path, "mapping")
    assert [row["source_column"] for row in mapping] == [column[1] for column in SOURCE]
    assert mapping[1]["score"] == 0.88
    alternatives = _sheet(path, "alternatives")
    assert len(alternatives) == len(PAIRS)
    assert [(row["target_column"], row["rank"]) for row in alternatives[:2]] == [
        ("person_id", 1),
        ("gender_concept_id", 2),
    ]
    assert [row["in_reference"] for row in alternatives[:2]] == ["yes", "no"]
    evidence = _sheet(path, "evidence")
    assert len(evidence) == sum(len(pair[6]) for pair in PAIRS)
    assert [(row["ids"], row["cited"]) for row in evidence[:2]] == [
        ("Q5 P569 Q2000001", "yes"),
        ("Q47574 P279 Q309314", "no"),
    ]
    metrics = {row["metric"]: row["value"] for row in _sheet(path, "metrics")}
    assert metrics["precision"] == 0.75
    assert metrics["mrr"] is None


def test_odd_names_come_back_exactly(lake: Lake) -> None:
    _odd(lake)
    names = [column[:2] for column in ODD_SOURCE]
    as_csv = _csv_rows(export_mapping(lake, "odd", "csv", None))
    assert [(row["source_table"], row["source_column"]) for row in as_csv] == names
    assert [row["source_description"] for row in as_csv] == [column[5] for column in ODD_SOURCE]
    path = export_mapping(lake, "odd", "xlsx", None)
    as_xlsx = _sheet(path, "mapping")
    assert [(row["source_table"], row["source_column"]) for row in as_xlsx] == names
    assert [row["source_data_type"] for row in as_xlsx] == [column[2] for column in ODD_SOURCE]
    # openpyxl leaves the format's _xHHHH_ for a control character as it is; Excel reads it back.
    assert [str(row["source_description"]).replace("_x001B_", "\x1b") for row in as_xlsx] == [
        column[5] for column in ODD_SOURCE
    ]
    assert _sheet(path, "metrics")[0]["metric"] == "no reference"


def test_nothing_in_a_workbook_is_a_formula_or_a_link(lake: Lake) -> None:
    _odd(lake)
    workbook = openpyxl.load_workbook(export_mapping(lake, "odd", "xlsx", None))
    cells = [cell for sheet in workbook for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert all(cell.hyperlink is None for cell in cells)
    assert any(str(cell.value).startswith("=cmd") for cell in cells)


def test_texts_and_sheets_beyond_the_limits_of_the_format_are_cut_and_say_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = ("t", "c", "text", "text", "", "x" * 40_000, [])
    fill(lake, "long", source=(column, *SOURCE))
    fill_pair = ((("t", "c"), TARGET[0][:2], 0.9, "proposed", 0.9, "parsed", ()), *PAIRS)
    fill(lake, "long", source=(column, *SOURCE), pairs=fill_pair)
    description = str(_sheet(export_mapping(lake, "long", "xlsx", None), "mapping")[0]["source_description"])
    assert len(description) == workbook_file.MAX_TEXT
    assert description.endswith("x…")
    monkeypatch.setattr(workbook_file, "MAX_ROWS", 5)
    rows = _sheet(export_mapping(lake, "long", "xlsx", None), "alternatives")
    assert len(rows) == 4
    assert str(rows[3]["source_table"]).startswith("7 more rows do not fit")


def test_a_task_without_candidates_can_be_exported(lake: Lake) -> None:
    fill(lake, "bare", pairs=(), not_matched=tuple(column[:2] for column in SOURCE), reference=False)
    path = export_mapping(lake, "bare", "xlsx", None)
    assert {row["decision"] for row in _sheet(path, "mapping")} == {"no_match"}
    assert _sheet(path, "evidence") == []


def test_out_names_a_file_or_a_folder(lake: Lake, tmp_path: Path) -> None:
    fill(lake)
    assert export_mapping(lake, "clinic", "csv", tmp_path / "new" / "m.csv") == tmp_path / "new" / "m.csv"
    assert (tmp_path / "new" / "m.csv").exists()
    assert export_mapping(lake, "clinic", "xlsx", tmp_path) == tmp_path / "clinic.xlsx"


def test_an_ending_of_the_other_format_is_refused(lake: Lake, tmp_path: Path) -> None:
    fill(lake)
    with pytest.raises(ExportError, match="--format xlsx"):
        export_mapping(lake, "clinic", "csv", tmp_path / "m.xlsx")
    with pytest.raises(ExportError, match="csv, xlsx"):
        export_mapping(lake, "clinic", "pdf", None)  # type: ignore[arg-type]
    assert list(tmp_path.glob("m.*")) == []


def test_a_task_that_was_not_mapped_is_refused(lake: Lake) -> None:
    with pytest.raises(ShowError, match="there is no task x"):
        export_mapping(lake, "x", "csv", None)
    assert not lake.paths.exports.exists()


def test_a_failed_write_leaves_the_old_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake)
    path = export_mapping(lake, "clinic", "xlsx", None)
    before = path.read_bytes()

    def full(_path: Path, _content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(LakeError, match="no space left"):
        export_mapping(lake, "clinic", "xlsx", None)
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == ["clinic.xlsx"]


def test_csv_can_be_read_by_polars_without_loss(lake: Lake) -> None:
    _odd(lake)
    frame = pl.read_csv(export_mapping(lake, "odd", "csv", None), infer_schema=False)
    assert frame["source_column"].to_list() == [column[1] for column in ODD_SOURCE]


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(_NAMES, _NAMES)
def test_safe_file_names(one: str, other: str) -> None:
    name = safe_file_name(one)
    assert "/" not in name
    assert "\\" not in name
    assert not name.startswith(".")
    assert name.isprintable()
    assert 0 < len(name.encode()) <= 150
    if one != other:
        assert name != safe_file_name(other)
