"""Type families of the dialects' type names, and of values where no name is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.rows.schema_attributes import TYPE_FAMILIES
from kgrag_assets.schemas.types import type_family

NAMES = {
    "integer": "int INTEGER bigint int(11)·unsigned serial NUMBER(10) NUMBER(38,0) NUMBER(*,0) numeric(10) HUGEINT "
    "int8 year",
    "decimal": "NUMBER numeric(10,2) DECIMAL(10,·4) double·precision float real money FLOAT(24) BINARY_DOUBLE",
    "text": "varchar(50) VARCHAR2(20·BYTE) character·varying(20) nvarchar(max) text CLOB uuid enum('a','b') "
    "[nvarchar](3) national·character·varying(3) LONG varchar(MAX) char(1)",
    "date": "date DATE",
    "time": "time time(6)·without·time·zone timetz",
    "timestamp": "timestamp datetime2(7) timestamp·with·time·zone TIMESTAMP(6)·WITH·LOCAL·TIME·ZONE datetime",
    "boolean": "bool BOOLEAN bit tinyint(1) bit(1)",
    "binary": "bytea BLOB varbinary(max) LONG·RAW raw(16) bit(8) image bit·varying(3)",
    "json": "json JSONB integer[] STRUCT(a·INTEGER,·b·VARCHAR) MAP(VARCHAR,·INTEGER) STRUCT(a·INTEGER)[] array "
    "varchar(3)[3]",
    "unknown": "geometry interval frobnicate · 12 ((",
}


@pytest.mark.parametrize(
    ("name", "family"),
    [(name.replace("·", " "), family) for family, names in NAMES.items() for name in names.split(" ")],
)
def test_family_of_a_type_name(name: str, family: str) -> None:
    assert type_family(name) == family


@pytest.mark.parametrize(
    ("samples", "family"),
    [
        (["1", "-20", "0"], "integer"),
        (["007", "008"], "text"),
        (["1", "1.5", "2e3"], "decimal"),
        (["2020-01-02"], "date"),
        (["2020-01-02 03:04:05", "2020-01-02T03:04Z"], "timestamp"),
        (["03:04"], "time"),
        (["true", "False"], "boolean"),
        (["1", "x"], "text"),
        (["", " "], "unknown"),
        ([], "unknown"),
    ],
)
def test_samples_decide_where_no_name_does(samples: list[str], family: str) -> None:
    assert type_family("", samples) == family
    assert type_family("varchar", samples) == "text"


@given(st.text(), st.lists(st.text()))
def test_every_text_has_one_of_the_families(name: str, samples: list[str]) -> None:
    assert type_family(name, samples) in TYPE_FAMILIES
