"""What the published snapshot holds: tables, and the views that answer an analyst's first questions."""

from __future__ import annotations

VIEWS: dict[str, str] = {
    "proposed_mapping": """
        SELECT m.task, m.source_table, m.source_column, m.target_table, m.target_column, m.decision,
               m.score, m.top_fact, m.reason, a.column_description AS source_description
        FROM attribute_mappings m
        JOIN schema_attributes a ON a.task = m.task AND a.attribute_id = m.source_attribute_id
        WHERE m.decision <> 'alternative'
        ORDER BY m.task, a.position, m.rank
    """,
    "pair_evidence": """
        SELECT c.task, c.source_table, c.source_column, c.target_table, c.target_column, c.pair_id,
               fact.rank AS fact_rank, fact.text AS fact, fact.kind AS kind, fact.method AS method, fact.score AS score
        FROM (SELECT *, unnest(facts) AS fact FROM ranked_contexts) c
    """,
    "cost_by_model": """
        SELECT task, provider, model, count(*) AS calls, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out,
               sum(cost_usd) AS cost_usd, sum(latency_s) AS latency_s,
               count(*) FILTER (WHERE status <> 'answered') AS not_answered
        FROM llm_calls GROUP BY ALL
    """,
}
