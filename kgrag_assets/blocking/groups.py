"""Attributes of one side that mean the same: found once, judged once, and expanded to all their pairs afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import name_words, split_name, stems

GROUPS_VERSION = "groups-1"

# From which cosine two descriptions of columns of one name say the same.
SAME_DESCRIPTION = 0.8
# Last words of the names of columns that point to a row of some table.
KEY_WORDS = frozenset(["identifier", "id", "key", "number", "no"])


@dataclass(frozen=True)
class Grouping:
    """The groups of one side.

    ``number`` is each attribute's group, shape (attributes,), groups counted from 0; ``representative`` is the place
    of each group's representative among the attributes; ``reason`` says for each attribute why it is in its group,
    and is empty for groups of one.
    """

    number: np.ndarray
    representative: np.ndarray
    reason: tuple[str, ...]

    @property
    def sizes(self) -> np.ndarray:
        """Members of each group, shape (groups,)."""
        return np.bincount(self.number, minlength=len(self.representative))


def group_attributes(attributes: Sequence[Attribute], descriptions: np.ndarray, *, group: bool = True) -> Grouping:
    """Find the attributes of one side that mean the same apart from the table they stand in.

    Members have the same words in their names and types that go together, and besides: the same description (or none),
    descriptions of nearly the same meaning, or a name that says that they point to one table (``person_id`` where
    there is a table ``person``). The representative is the member in the table that the name speaks of, else the first
    one: it does not change with other attributes.

    Args:
        attributes: attributes of one side, in the order of the schema.
        descriptions: unit vectors of the description view, shape (attributes, d).
        group: False puts each attribute in a group of its own.
    """
    tables = {" ".join(stems(name_words(item.table_name))) for item in attributes}
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(attributes):
        by_name[" ".join(split_name(item.column_name)) if group else str(place)].append(place)
    leader = list(range(len(attributes)))
    reasons = [""] * len(attributes)
    for name, places in by_name.items():
        if len(places) < 2 or not name:
            continue
        pointed = _pointed_table(attributes[places[0]], tables)
        for component, reason in _components(attributes, places, descriptions, points=bool(pointed)):
            chosen = _representative(attributes, component, pointed)
            for place in component:
                leader[place] = chosen
                reasons[place] = reason
    numbers: dict[int, int] = {}
    number = np.array([numbers.setdefault(place, len(numbers)) for place in leader], dtype=np.int64)
    return Grouping(number, np.array(list(numbers), dtype=np.int64), tuple(reasons))


def _pointed_table(attribute: Attribute, tables: Iterable[str]) -> str:
    """Return the stems of the table that a column's name points to, empty text where it points to none."""
    words = name_words(attribute.column_name)
    if len(words) < 2 or words[-1] not in KEY_WORDS:
        return ""
    own = " ".join(stems(words[:-1]))
    return own if own in tables else ""


def _components(
    attributes: Sequence[Attribute], places: Sequence[int], descriptions: np.ndarray, *, points: bool
) -> list[tuple[list[int], str]]:
    """Connect the columns of one name that mean the same; components of at least two, each with its reason."""
    vectors = descriptions[list(places)].astype(np.float64)
    cosines = vectors @ vectors.T
    parent = list(range(len(places)))

    def root(place: int) -> int:
        while parent[place] != place:
            place = parent[place]
        return place

    why: dict[int, str] = {}
    for right in range(len(places)):
        for left in range(right):
            one, other = attributes[places[left]], attributes[places[right]]
            if not _types_agree(one, other):
                continue
            mine, its = (" ".join(item.column_description.split()) for item in (one, other))
            if mine == its:
                reason = "the same name and description" if mine else "the same name, and no description"
            elif mine and its and cosines[left, right] >= SAME_DESCRIPTION:
                reason = "the same name, and descriptions of one meaning"
            elif points:
                reason = "the same name, which points to one table"
            else:
                continue
            parent[root(right)] = root(left)
            why.setdefault(right, reason)
            why.setdefault(left, reason)
    found: dict[int, list[int]] = defaultdict(list)
    for place in range(len(places)):
        found[root(place)].append(place)
    return [([places[place] for place in members], why[members[0]]) for members in found.values() if len(members) > 1]


def _types_agree(one: Attribute, other: Attribute) -> bool:
    families = {one.type_family, other.type_family} - {"unknown"}
    return len(families) < 2 or families == {"integer", "decimal"}


def _representative(attributes: Sequence[Attribute], members: Sequence[int], pointed: str) -> int:
    for place in members:
        if pointed and " ".join(stems(name_words(attributes[place].table_name))) == pointed:
            return place
    return next((place for place in members if attributes[place].is_primary_key), members[0])


def groups_frame(task: str, attributes: Sequence[Attribute], grouping: Grouping) -> list[dict[str, object]]:
    """Describe the groups of one side as rows of ``attribute_groups``, without their keys."""
    sizes = grouping.sizes
    return [
        {
            "task": task,
            "side": item.side,
            "attribute_id": item.attribute_id,
            "table_name": item.table_name,
            "column_name": item.column_name,
            "representative_id": attributes[int(grouping.representative[number])].attribute_id,
            "group_size": int(sizes[number]),
            "reason": reason,
        }
        for item, number, reason in zip(attributes, grouping.number, grouping.reason, strict=True)
    ]


def groups_table(rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    """Make ``attribute_groups`` from the rows of both sides."""
    schema = {name: dtype for name, dtype in ATTRIBUTE_GROUPS.schema.items() if name != ROW_KEY}
    return ATTRIBUTE_GROUPS.conform(with_row_key(pl.DataFrame(list(rows), schema=schema)))


def covered_pairs(candidates: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Expand candidate pairs of representatives to the pairs of all members of their groups.

    Args:
        candidates: rows of ``candidate_pairs``.
        groups: rows of ``attribute_groups`` of the same task.

    Returns:
        One row for each pair of attributes: ``judged_pair_id`` (the candidate's), ``pair_id``,
        ``source_attribute_id``, ``target_attribute_id``, and ``source_table``, ``source_column``, ``target_table``,
        ``target_column``; in the order of the candidates.
    """
    members = groups.select("representative_id", "attribute_id", "table_name", "column_name")
    expanded = candidates.select(
        pl.col("pair_id").alias("judged_pair_id"), "source_attribute_id", "target_attribute_id"
    )
    for side in ("source", "target"):
        mine = members.rename({"table_name": f"{side}_table", "column_name": f"{side}_column"})
        expanded = expanded.join(
            mine, left_on=f"{side}_attribute_id", right_on="representative_id", how="inner", maintain_order="left_right"
        )
        expanded = expanded.drop(f"{side}_attribute_id").rename({"attribute_id": f"{side}_attribute_id"})
    ids = expanded.select("source_attribute_id", "target_attribute_id").iter_rows()
    return expanded.with_columns(pl.Series("pair_id", [pair_id_of(*pair) for pair in ids], dtype=pl.String))
