"""Numbering the ids of a graph: every node, relation and graph gets a number and a label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

_NAMED = {"id": pl.String, "label": pl.String}


@dataclass(frozen=True)
class Edges:
    """Edges as numbers, int32 of equal length; ``graphs`` holds the number or, once united, the mask of the graphs."""

    heads: np.ndarray
    relations: np.ndarray
    tails: np.ndarray
    graphs: np.ndarray


@dataclass(frozen=True)
class Numbered:
    """Ids sorted by their bytes, their labels, and the final number for each one given on the way."""

    ids: pl.Series
    labels: pl.Series
    final: np.ndarray


class Numbering:
    """Numbers given in the order in which ids are met, and the final ones once all are known.

    A label comes from the entity's row of the first graph that has one, else it is the first, in the order of
    letters, of those by which statements call the id.
    """

    def __init__(self, entities: Iterable[pl.LazyFrame]) -> None:
        """Read the names in ``kg_entities``, one bucket after another; each row is a node."""
        names = [rows.select(pl.col("entity_id").alias("id"), "graph", "label").collect() for rows in entities]
        rows = pl.concat([pl.DataFrame(schema={"id": pl.String, "graph": pl.String, "label": pl.String}), *names])
        del names
        self._graphs: dict[str, int] = {}
        self._number_graphs(rows["graph"].unique().sort().to_list())
        if len(self._graphs) > 1:
            rows = rows.sort("graph").unique("id", keep="first", maintain_order=True)
        self._known = rows.select("id", "label")
        self._numbers = _numbered(self._known["id"])
        # Ids that only statements have, numbered after those, and the names that statements give them.
        self._unlisted = _numbered(pl.Series("id", [], dtype=pl.String))
        self._stated: list[pl.DataFrame] = [pl.DataFrame(schema=_NAMED)]
        self._relations: dict[str, int] = {}
        self._relation_labels: list[pl.DataFrame] = [pl.DataFrame(schema=_NAMED)]

    def encode(self, triples: list[pl.LazyFrame]) -> Edges:
        """Read rows of ``kg_triples`` and return those whose tail is an entity as numbers, for now."""
        edges = pl.concat(triples).filter(pl.col("tail").is_not_null())
        kinds = edges.group_by("graph", "relation").agg(pl.col("relation_label").min()).sort("relation").collect()
        self._relation_labels.append(
            kinds.select(pl.col("relation").alias("id"), pl.col("relation_label").alias("label"))
        )
        for relation in kinds["relation"]:
            self._relations.setdefault(relation, len(self._relations))
        graphs = kinds["graph"].unique().sort().to_list()
        self._number_graphs(graphs)
        rows = edges.select("head", "relation", "tail", *(["graph"] if len(graphs) > 1 else [])).collect()
        ends = pl.concat([rows["head"], rows["tail"]]).alias("id")
        nodes = _looked_up(ends, self._numbers)
        unlisted = nodes.is_null()
        if unlisted.any():
            self._number_unlisted(edges, ends.filter(unlisted).unique())
            nodes = nodes.fill_null(_looked_up(ends, self._unlisted))
        numbers = nodes.to_numpy()
        return Edges(
            numbers[: rows.height],
            _codes(rows["relation"], self._relations),
            numbers[rows.height :],
            _codes(rows["graph"], self._graphs)
            if len(graphs) > 1
            else np.full(rows.height, self._graphs[graphs[0]] if graphs else 0, dtype=np.int32),
        )

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs, in the order of their numbers."""
        return tuple(self._graphs)

    def nodes(self) -> Numbered:
        """Return the nodes met so far."""
        labels = self._unlisted.select("id").join(
            _least_labels(pl.concat(self._stated)), on="id", how="left", maintain_order="left"
        )
        return _final(pl.concat([self._known, labels.select("id", "label")]))

    def relations(self) -> Numbered:
        """Return the relations met so far."""
        names = pl.DataFrame({"id": list(self._relations)}, schema={"id": pl.String})
        stated = names.join(_least_labels(pl.concat(self._relation_labels)), on="id", how="left", maintain_order="left")
        listed = self._known.filter(pl.col("id").is_in(names["id"].implode()))
        both = stated.join(listed, on="id", how="left", suffix="_of_row", maintain_order="left")
        return _final(both.select("id", pl.coalesce("label_of_row", "label").alias("label")))

    def _number_unlisted(self, edges: pl.LazyFrame, ids: pl.Series) -> None:
        """Give numbers to ids that have no row of their own, and keep the labels that these statements give them."""
        pairs = pl.concat(
            edges.select(pl.col(end).alias("id"), pl.col(f"{end}_label").alias("label")) for end in ("head", "tail")
        )
        wanted = ids.to_frame()
        self._stated.append(_least_labels(pairs.join(wanted.lazy(), on="id", how="semi").collect()))
        new = wanted.join(self._unlisted, on="id", how="anti").sort("id")
        self._unlisted = pl.concat([self._unlisted, _numbered(new["id"], self._known.height + self._unlisted.height)])

    def _number_graphs(self, names: list[str]) -> None:
        for name in names:
            self._graphs.setdefault(name, len(self._graphs))


def _numbered(ids: pl.Series, start: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"id": ids, "number": np.arange(start, start + len(ids), dtype=np.int32)})


def _looked_up(ids: pl.Series, numbers: pl.DataFrame) -> pl.Series:
    return ids.alias("id").to_frame().join(numbers, on="id", how="left", maintain_order="left")["number"]


def _codes(texts: pl.Series, numbers: dict[str, int]) -> np.ndarray:
    """Return the numbers of few different texts, whose numbers are their places."""
    codes: np.ndarray = texts.cast(pl.Enum(list(numbers))).to_physical().cast(pl.Int32).to_numpy()
    return codes


def _least_labels(names: pl.DataFrame) -> pl.DataFrame:
    """Return each id once, with the first of its labels in the order of letters: a choice that never changes."""
    return names.group_by("id").agg(pl.col("label").min())


def _final(names: pl.DataFrame) -> Numbered:
    ordered = names.with_row_index("number").sort("id")
    final = np.empty(names.height, dtype=np.int32)
    final[ordered["number"].to_numpy()] = np.arange(names.height, dtype=np.int32)
    return Numbered(ordered["id"], ordered["label"], final)
