"""From the parts of a graph to rows of ``kg_entities`` and ``kg_triples``: names chosen, filters kept, labels joined.

All of it is SQL over Parquet files in a DuckDB file of its own, so that memory is bounded whatever the graph's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.extraction import Part
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.staging_queries import entities_query, names_query, triples_query
from kgrag_assets.lake.changes import MARK
from kgrag_assets.lake.files import LakeError
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES

VERSION = "staging-1"
# What DuckDB raises where bytes of a Parquet file are not what they should be.
_DAMAGED = (duckdb.IOException, duckdb.InvalidInputException)


@dataclass(frozen=True)
class Overlay:
    """Changes since the graph's files were written: parts of edited entities, and ids that are covered or moved.

    ``covered``: every id whose rows come from the overlay alone, also the deleted ones. ``redirects``: merged ids
    with the id that took their place.
    """

    parts: tuple[Part, ...] = ()
    covered: frozenset[str] = frozenset()
    redirects: tuple[tuple[str, str], ...] = ()


class Staging:
    """A DuckDB file in which one load does its work; a context manager, the file is removed at the end."""

    def __init__(self, scratch: Path, *, memory_mb: int, threads: int) -> None:
        """Open a fresh file in ``scratch``, an existing folder; ``memory_mb`` bounds what DuckDB holds."""
        self._path = scratch / "staging.duckdb"
        self._path.unlink(missing_ok=True)
        self._connection = duckdb.connect(str(self._path))
        self._folders: list[GraphFolder] = []
        self._read_from: set[str] = set()
        self._connection.execute(f"SET memory_limit = '{int(memory_mb)}MB'")
        self._connection.execute(f"SET threads = {int(threads)}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute("SET temp_directory = ?", [str(scratch / "spill")])

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close and remove the file."""
        self._connection.close()
        for path in (self._path, self._path.with_suffix(".duckdb.wal")):
            path.unlink(missing_ok=True)

    def add(
        self,
        folder: GraphFolder,
        parts: Sequence[Part],
        overlay: Overlay,
        only: Sequence[str] | None = None,
        *,
        settle: bool = True,
    ) -> None:
        """Take a graph's parts and settle its names.

        Args:
            folder: the graph.
            parts: what was read of its files, in their order.
            overlay: what changed since.
            only: local ids; triples are then made of these heads only, and entities of these ids. Without: all.
            settle: False where ``restrict`` follows.
        """
        number = len(self._folders)
        self._folders.append(folder)
        self._read_from.update(str(part.folder.parent) for part in (*parts, *overlay.parts))
        self._list("parts", number, parts, overlay.parts)
        self._ids("covered", number, sorted(overlay.covered))
        self._pairs("redirects", number, overlay.redirects)
        if only is not None:
            self._ids("only", number, sorted(only))
        self._edges(number)
        if settle:
            self._settle(number)

    def restrict(self, only: Sequence[str]) -> None:
        """Restrict the last added graph to some ids, and settle its names."""
        number = len(self._folders) - 1
        self._ids("only", number, sorted(only))
        self._settle(number)

    def _settle(self, number: int) -> None:
        restricted = self._is_restricted(number)
        chosen = f"WHERE head IN (SELECT local FROM only_{number})" if restricted else ""
        # Restricted, the statements are few: they are kept, not read again for each bucket.
        kind = "TABLE" if restricted else "VIEW"
        self._run(f"CREATE OR REPLACE {kind} edges_{number} AS SELECT * FROM all_edges_{number} {chosen}")
        self._names(number, restricted=restricted)
        self._keep(number, self._folders[number])

    def affected_by(self, ids: Sequence[str]) -> list[str]:
        """Return the heads of the last graph's statements that show one of these ids, as tail, relation or unit."""
        number = len(self._folders) - 1
        self._ids("shown", number, sorted(ids))
        shown = f"(SELECT local FROM shown_{number})"
        rows = self._run(
            f"SELECT DISTINCT head FROM all_edges_{number} WHERE relation IN {shown} OR tail IN {shown} "
            f"OR unit IN {shown}" + (f" OR raw_tail IN {shown}" if self._count(f"redirects_{number}") else "")
        ).fetchall()
        return sorted(row[0] for row in rows)

    def write_entities(self, bucket: int, path: Path, mark: str) -> None:
        """Write one bucket of ``kg_entities``, of all graphs, as a Parquet file sorted by key."""
        self._copy(KG_ENTITIES.names, [self._entities_sql(n, bucket) for n in self._numbers], "entity_id", path, mark)

    def write_triples(self, bucket: int, path: Path, mark: str) -> None:
        """Write one bucket of ``kg_triples``, of all graphs, as a Parquet file sorted by key."""
        self._copy(KG_TRIPLES.names, [self._triples_sql(n, bucket) for n in self._numbers], "triple_id", path, mark)

    def entities(self) -> pl.DataFrame:
        """Return the rows of ``kg_entities`` of all buckets: for a restricted graph."""
        return self._frame(KG_ENTITIES.names, [self._entities_sql(number, None) for number in self._numbers])

    def triples(self) -> pl.DataFrame:
        """Return the rows of ``kg_triples`` of all buckets: for a restricted graph."""
        return self._frame(KG_TRIPLES.names, [self._triples_sql(number, None) for number in self._numbers])

    @property
    def _numbers(self) -> range:
        return range(len(self._folders))

    def _run(self, query: str, parameters: Sequence[object] = ()) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(query, list(parameters))
        except duckdb.OutOfMemoryException as error:
            raise KnowledgeError(
                f"the graph needs more memory than graph.memory_mb allows ({error}): raise it or use more buckets"
            ) from error
        except duckdb.Error as error:
            writing = isinstance(error, duckdb.IOException | duckdb.TransactionException)
            if writing and "No files found" not in str(error):
                raise LakeError(f"cannot write below {self._path.parent} ({error}): is the disk full?") from error
            if not (isinstance(error, _DAMAGED) or type(error) is duckdb.Error):
                raise
            raise LakeError(
                f"rows that were read of the graph's files are damaged ({error}): delete "
                f"{' and '.join(sorted(self._read_from))} and run again; the files are then read anew"
            ) from error

    def _ids(self, name: str, number: int, ids: Sequence[str]) -> None:
        frame = pl.DataFrame({"local": ids}, schema={"local": pl.String})
        self._table(f"{name}_{number}", frame)

    def _pairs(self, name: str, number: int, pairs: Sequence[tuple[str, str]]) -> None:
        self._table(
            f"{name}_{number}",
            pl.DataFrame(list(pairs), schema={"local": pl.String, "target": pl.String}, orient="row"),
        )

    def _table(self, name: str, frame: pl.DataFrame) -> None:
        self._connection.register("incoming", frame.to_arrow())
        self._run(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def _list(self, name: str, number: int, parts: Sequence[Part], overlay: Sequence[Part]) -> None:
        rows = [
            (str(part.table(table)), table, ordinal, part in overlay)
            for ordinal, part in enumerate([*parts, *overlay])
            for table in ("names", "edges", "counts")
        ]
        schema = {"path": pl.String, "kind": pl.String, "ordinal": pl.Int64, "overlay": pl.Boolean}
        self._table(f"{name}_{number}", pl.DataFrame(rows, schema=schema, orient="row"))

    def _source(self, number: int, kind: str, columns: str, local: str) -> str:
        """Return a query of one kind of part rows: the overlay's, and the files' of ids that it does not cover."""
        halves = [self._half(number, kind, columns, overlay=overlay) for overlay in (False, True)]
        if halves[0] and self._count(f"covered_{number}"):
            halves[0] += f" WHERE NOT EXISTS (SELECT 1 FROM covered_{number} AS c WHERE c.local = r.{local})"
        found = [half for half in halves if half]
        if not found:
            return f"SELECT {columns}, 0::BIGINT AS ordinal FROM {_nothing(kind)} WHERE false"
        return " UNION ALL ".join(found)

    def _half(self, number: int, kind: str, columns: str, *, overlay: bool) -> str:
        """Return a query of the rows of the files' parts, or of the overlay's; empty where there are none."""
        listed = f"FROM parts_{number} WHERE kind = '{kind}' AND overlay = {overlay}"
        paths = [row[0] for row in self._run(f"SELECT path {listed} ORDER BY ordinal").fetchall()]
        if not paths:
            return ""
        variable = f"{kind}_{number}_{int(overlay)}"
        self._connection.execute(f"SET VARIABLE {variable} = ?", [paths])
        if kind != "names":
            # Only of names does it matter which part came first.
            read = f"read_parquet(getvariable('{variable}'), hive_partitioning = false)"
            return f"SELECT {columns}, 0::BIGINT AS ordinal FROM {read} AS r"
        read = f"read_parquet(getvariable('{variable}'), filename = true, hive_partitioning = false)"
        places = f"(SELECT path, ordinal {listed})"
        return f"SELECT {columns}, p.ordinal FROM {read} AS r JOIN {places} AS p ON p.path = r.filename"

    def _count(self, table: str) -> int:
        row = self._run(f"SELECT count(*) FROM {table}").fetchone()
        return 0 if row is None else int(row[0])

    def _edges(self, number: int) -> None:
        source = self._source(number, "edges", "r.bucket, r.head, r.relation, r.tail, r.value, r.unit", "head")
        moved, tail = "", "e.tail"
        if self._count(f"redirects_{number}"):
            moved, tail = f"LEFT JOIN redirects_{number} AS d ON d.local = e.tail", "coalesce(d.target, e.tail)"
        self._run(
            f"CREATE OR REPLACE VIEW all_edges_{number} AS "
            f"SELECT e.bucket, e.head, e.relation, {tail} AS tail, e.tail AS raw_tail, e.value, e.unit "
            f"FROM ({source}) AS e {moved}"
        )

    def _names(self, number: int, *, restricted: bool) -> None:
        source = self._source(number, "names", "r.bucket, r.local, r.what, r.text, r.rank, r.place", "local")
        needed = ""
        if restricted:
            # Names of what the statements show, besides the ids themselves.
            self._run(
                f"CREATE OR REPLACE TABLE needed_{number} AS SELECT DISTINCT local FROM ("
                f"SELECT local FROM only_{number} UNION ALL SELECT head FROM edges_{number} "
                f"UNION ALL SELECT relation FROM edges_{number} UNION ALL SELECT tail FROM edges_{number} "
                f"UNION ALL SELECT unit FROM edges_{number}) WHERE local IS NOT NULL"
            )
            needed = f"WHERE local IN (SELECT local FROM needed_{number})"
        # Which of two names comes first: the language, then the place in the files.
        order = "(rank::UBIGINT << 52) | (ordinal::UBIGINT << 28) | place::UBIGINT"
        self._run(
            f"CREATE OR REPLACE TABLE spoken_{number} AS SELECT bucket, local, what, text, {order} AS place "
            f"FROM ({source}) {needed}"
        )
        self._run(f"CREATE OR REPLACE TABLE names_{number} AS {names_query(number)}")
        self._run(f"DROP TABLE spoken_{number}")

    def _keep(self, number: int, folder: GraphFolder) -> None:
        chosen = folder.filter
        relation = "relation OR regexp_full_match(local, 'P[0-9]+')" if folder.has_wikidata_ids else "relation"
        # A dump's reader lists what it keeps; elsewhere whatever has a label of its own is an entity.
        conditions = ["listed" if folder.format == "wikidata_json" else "(listed OR label IS NOT NULL)"]
        if chosen.classes:
            self._classes(number, folder)
            self._connection.execute("SET VARIABLE instance_of = ?", [chosen.instance_relation])
            of_class = (
                f"SELECT e.head FROM all_edges_{number} AS e JOIN classes_{number} AS c ON c.local = e.tail "
                f"WHERE e.relation = getvariable('instance_of')"
            )
            conditions.append(
                f"(({relation}) OR local IN (SELECT local FROM classes_{number}) OR local IN ({of_class}))"
            )
        if chosen.min_statements and folder.format != "wikidata_json":
            # A dump says it entity by entity; elsewhere the statements are counted here.
            many = f"SELECT head FROM all_edges_{number} GROUP BY head HAVING count(*) >= {int(chosen.min_statements)}"
            conditions.append(f"(({relation}) OR local IN ({many}))")
        if chosen.min_sitelinks and folder.format != "wikidata_json":
            counts = self._source(number, "counts", "r.local, r.sitelinks", "local")
            known = f"SELECT local FROM ({counts}) GROUP BY local HAVING max(sitelinks) >= {int(chosen.min_sitelinks)}"
            conditions.append(f"(({relation}) OR local IN ({known}))")
        if self._is_restricted(number):
            conditions.append(f"local IN (SELECT local FROM needed_{number})")
        self._run(
            f"CREATE OR REPLACE TABLE kept_{number} AS "
            f"SELECT *, CASE WHEN {relation} THEN 'relation' ELSE 'entity' END AS kind FROM names_{number} "
            f"WHERE {' AND '.join(conditions)}"
        )

    def _classes(self, number: int, folder: GraphFolder) -> None:
        self._ids("roots", number, folder.filter.classes)
        self._connection.execute("SET VARIABLE subclass_of = ?", [folder.filter.subclass_relation])
        self._run(
            f"CREATE OR REPLACE TABLE classes_{number} AS WITH RECURSIVE steps AS ("
            f"SELECT DISTINCT head, tail FROM all_edges_{number} WHERE relation = getvariable('subclass_of')), "
            f"closure(local) AS (SELECT local FROM roots_{number} UNION "
            f"SELECT steps.head FROM steps JOIN closure ON steps.tail = closure.local) SELECT local FROM closure"
        )

    def _is_restricted(self, number: int) -> bool:
        found = self._run("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [f"only_{number}"]).fetchone()
        return found is not None

    def _entities_sql(self, number: int, bucket: int | None) -> str:
        self._name(number, self._folders[number])
        return entities_query(number, bucket, restricted=self._is_restricted(number))

    def _triples_sql(self, number: int, bucket: int | None) -> str:
        folder = self._folders[number]
        self._name(number, folder)
        chosen = folder.filter
        for name, relations in (("relations", chosen.relations), ("without", chosen.without_relations)):
            if relations:
                self._connection.execute(f"SET VARIABLE {name}_{number} = ?", [list(relations)])
        return triples_query(number, bucket, chosen)

    def _name(self, number: int, folder: GraphFolder) -> None:
        self._connection.execute(f"SET VARIABLE namespace_{number} = ?", [f"{folder.namespace}:"])
        self._connection.execute(f"SET VARIABLE graph_{number} = ?", [folder.name])

    def _copy(self, names: Sequence[str], queries: Sequence[str], key: str, path: Path, mark: str) -> None:
        if not queries:
            table = KG_ENTITIES if "label" in names else KG_TRIPLES
            table.empty().write_parquet(path, metadata={MARK: mark})
            return
        union = " UNION ALL ".join(f"SELECT {', '.join(names)} FROM ({query})" for query in queries)
        # The path is this program's own; COPY takes no parameters.
        target = str(path).replace("'", "''")
        self._run(
            f"COPY ({union} ORDER BY {key}, graph) TO '{target}' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880, KV_METADATA {{{MARK}: '{mark}'}})"
        )

    def _frame(self, names: Sequence[str], queries: Sequence[str]) -> pl.DataFrame:
        table = KG_ENTITIES if "label" in names else KG_TRIPLES
        if not queries:
            return table.empty()
        union = " UNION ALL ".join(f"SELECT {', '.join(names)} FROM ({query})" for query in queries)
        self._run(f"CREATE OR REPLACE TEMP TABLE result AS {union}")
        found = pl.from_arrow(self._connection.table("result").to_arrow_table())
        assert isinstance(found, pl.DataFrame)  # noqa: S101  (a table becomes a frame)
        return table.conform(found.cast(table.schema))


def _nothing(kind: str) -> str:
    columns = {
        "names": "0 AS bucket, '' AS local, 0 AS what, '' AS text, 0 AS rank, 0 AS place",
        "edges": "0 AS bucket, '' AS head, '' AS relation, '' AS tail, '' AS value, '' AS unit",
        "counts": "0 AS bucket, '' AS local, 0 AS sitelinks, 0 AS statements, 0 AS revision",
    }
    return f"(SELECT {columns[kind]}) AS r"
