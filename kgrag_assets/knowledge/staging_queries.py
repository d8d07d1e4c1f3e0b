"""The queries that make rows of ``kg_entities`` and ``kg_triples`` of one graph's tables in a staging file.

``{number}`` is the graph's place in the file; ``namespace_…``, ``graph_…``, ``relations_…`` and ``without_…`` are
variables that the staging sets, so that no text of a graph or its settings becomes part of a query.
"""

from __future__ import annotations

from kgrag_assets.knowledge.collector import ALIAS, DESCRIPTION, LABEL, LISTED, RELATION
from kgrag_assets.knowledge.filters import GraphFilter
from kgrag_assets.rows.knowledge_graph import ENTITY_KEY_SQL, TRIPLE_ID_SQL, TRIPLE_KEY_SQL


def names_query(number: int) -> str:
    """Settle names: of each id the first label and description, and its aliases in order without the label."""
    return f"""
        WITH own AS (
            SELECT local, any_value(bucket) AS bucket,
                arg_min(text, place) FILTER (WHERE what = {LABEL}) AS label,
                arg_min(text, place) FILTER (WHERE what = {DESCRIPTION}) AS description,
                bool_or(what = {LISTED}) AS listed,
                bool_or(what = {RELATION}) AS relation
            FROM spoken_{number} GROUP BY local
        ),
        one AS (
            SELECT local, text, min(place) AS place FROM spoken_{number} WHERE what = {ALIAS} GROUP BY local, text
        ),
        others AS (SELECT local, list(text ORDER BY place) AS aliases FROM one GROUP BY local)
        SELECT own.local, own.bucket, own.label, coalesce(own.description, '') AS description,
            list_filter(coalesce(others.aliases, []), lambda alias: alias IS DISTINCT FROM own.label) AS aliases,
            own.listed, own.relation
        FROM own LEFT JOIN others ON others.local = own.local
    """


def entities_query(number: int, bucket: int | None, *, restricted: bool) -> str:
    """Make rows of ``kg_entities`` of the kept names: of one bucket, or of all; restricted to the ids asked for."""
    where = "true" if bucket is None else f"bucket = {int(bucket)}"
    if restricted:
        where += f" AND local IN (SELECT local FROM only_{number})"
    return f"""
        SELECT *, {ENTITY_KEY_SQL} AS row_key FROM (
            SELECT concat(getvariable('namespace_{number}'), local) AS entity_id,
                getvariable('graph_{number}') AS graph, bucket::INTEGER AS bucket, kind,
                coalesce(label, local) AS label, aliases, description
            FROM kept_{number} WHERE {where}
        )
    """


def triples_query(number: int, bucket: int | None, chosen: GraphFilter) -> str:
    """Make rows of ``kg_triples`` of the kept heads: of one bucket or of all; ids stand for missing labels."""
    where = "true" if bucket is None else f"e.bucket = {int(bucket)}"
    if chosen.relations:
        where += f" AND list_contains(getvariable('relations_{number}'), e.relation)"
    if chosen.without_relations:
        where += f" AND NOT list_contains(getvariable('without_{number}'), e.relation)"
    if chosen.tails == "kept":
        where += f" AND (e.tail IS NULL OR e.tail IN (SELECT local FROM kept_{number}))"
    namespace = f"getvariable('namespace_{number}')"
    statements = f"""
        SELECT DISTINCT e.bucket::INTEGER AS bucket, e.head AS h, e.relation AS r, e.tail AS t,
            CASE WHEN e.unit IS NULL THEN e.value ELSE concat(e.value, ' ', coalesce(u.label, e.unit)) END AS tail_value
        FROM edges_{number} AS e LEFT JOIN names_{number} AS u ON u.local = e.unit
        WHERE {where} AND e.head IN (SELECT local FROM kept_{number})
    """
    named = f"""
        SELECT getvariable('graph_{number}') AS graph, s.bucket,
            concat({namespace}, s.h) AS head, concat({namespace}, s.r) AS relation,
            CASE WHEN s.t IS NULL THEN NULL ELSE concat({namespace}, s.t) END AS tail, s.tail_value,
            coalesce(h.label, s.h) AS head_label, coalesce(r.label, s.r) AS relation_label,
            coalesce(t.label, s.t, s.tail_value) AS tail_label
        FROM ({statements}) AS s
        LEFT JOIN names_{number} AS h ON h.local = s.h
        LEFT JOIN names_{number} AS r ON r.local = s.r
        LEFT JOIN names_{number} AS t ON t.local = s.t
    """
    with_id = f"SELECT {TRIPLE_ID_SQL} AS triple_id, * FROM ({named})"
    return f"SELECT *, {TRIPLE_KEY_SQL} AS row_key FROM ({with_id})"
