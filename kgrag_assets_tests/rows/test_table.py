"""Tables: what fits is taken, what does not is named."""

from __future__ import annotations

import polars as pl
import pytest

from kgrag_assets.rows.catalog import PUBLISHED_TABLES
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, vectors_of
from kgrag_assets.rows.table import Column, Table, TableError, with_row_key

PEOPLE = Table(
    "people",
    "People.",
    (Column("name", pl.String, "Name."), Column("age", pl.Int32, "Age.", nullable=True)),
    key=("name",),
)


def test_a_frame_that_fits_is_taken_with_its_columns_in_order() -> None:
    frame = pl.DataFrame({"age": [1], "name": ["a"]}, schema={"age": pl.Int32, "name": pl.String})
    assert PEOPLE.conform(frame).columns == ["name", "age"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"name": ["a"]}), r"missing columns \['age'\]"),
        (
            pl.DataFrame({"name": ["a"], "age": [1], "x": [1]}),
            r"unknown columns \['x'\]",
        ),
        (pl.DataFrame({"name": ["a"], "age": ["1"]}), "people.age: expected Int32, found String"),
        (
            pl.DataFrame({"name": ["a", None], "age": [1, 2]}, schema={"name": pl.String, "age": pl.Int32}),
            "people.name: row 1 is empty",
        ),
        (
            pl.DataFrame({"name": ["a", "a"], "age": [1, 2]}, schema={"name": pl.String, "age": pl.Int32}),
            r"the key \('a',\) stands in more than one row",
        ),
    ],
)
def test_what_does_not_fit_is_named(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(TableError, match=message):
        PEOPLE.conform(frame)


def test_rows_must_name_every_column() -> None:
    with pytest.raises(TableError, match=r"row 1: missing columns \['age'\], unknown columns \['agee'\]"):
        PEOPLE.frame([{"name": "a", "age": 1}, {"name": "b", "agee": 1}])


@pytest.mark.parametrize("table", PUBLISHED_TABLES, ids=lambda table: table.name)
def test_every_published_table_says_what_its_columns_mean(table: Table) -> None:
    assert table.description.endswith(".")
    assert all(column.description.endswith(".") for column in table.columns)
    assert set(table.key) <= set(table.names)
    assert table.empty().height == 0


def test_a_row_key_hashes_the_row_and_the_salt() -> None:
    frame = pl.DataFrame({"name": ["a", "b"], "age": [1, 1]})
    keys = with_row_key(frame)["row_key"].to_list()
    assert len(set(keys)) == 2
    assert with_row_key(frame.reverse())["row_key"].to_list() == keys[::-1]
    assert with_row_key(frame, "other")["row_key"].to_list() != keys


def test_vectors_of_two_models_are_never_mixed() -> None:
    def row(name: str, model: str) -> dict[str, object]:
        return {
            "task": "t",
            "attribute_id": name,
            "view": "full",
            "text": "x",
            "model_id": model,
            "vector": [1.0, 0.0],
            "row_key": name,
        }

    assert vectors_of(ATTRIBUTE_EMBEDDINGS.frame([row("a", "m"), row("b", "m")])).shape == (2, 2)
    with pytest.raises(TableError, match="several models must not be mixed: m, n"):
        vectors_of(ATTRIBUTE_EMBEDDINGS.frame([row("a", "m"), row("b", "n")]))
