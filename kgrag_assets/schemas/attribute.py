"""An attribute as the later rooms pass it around: one row of ``schema_attributes``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from kgrag_assets.schemas.value_profile import ValueProfile


@dataclass(frozen=True)
class Attribute:
    """One column of a schema. Names and descriptions are untrusted text."""

    attribute_id: str
    side: str
    table_name: str
    column_name: str
    data_type: str
    type_family: str
    table_description: str
    column_description: str
    sample_values: tuple[str, ...] = ()
    is_primary_key: bool | None = None
    references_table: str | None = None
    references_column: str | None = None
    distinct_count: int | None = None
    null_share: float | None = None
    profile: ValueProfile | None = None


_FIELDS = tuple(Attribute.__dataclass_fields__)


def attributes_of(frame: pl.DataFrame) -> dict[str, Attribute]:
    """Turn rows of ``schema_attributes`` into attributes by id, in the order of the frame."""
    rows: Iterable[dict[str, object]] = frame.select(_FIELDS).iter_rows(named=True)
    found: dict[str, Attribute] = {}
    for row in rows:
        values = dict(row)
        samples = values["sample_values"]
        values["sample_values"] = tuple(samples) if isinstance(samples, list) else ()
        profile = values["profile"]
        values["profile"] = ValueProfile.of_row(profile) if isinstance(profile, dict) else None
        attribute = Attribute(**values)  # type: ignore[arg-type]  # types are held by the table
        found[attribute.attribute_id] = attribute
    return found
