"""The analyst's notebook: what was mapped, why, what is unsure, what it cost, how good it is."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Mapping review")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Mapping review

    Reads the published snapshot and changes nothing. `KGRAG_SNAPSHOT` names another file than
    `data_lake/kgrag.duckdb`.

    Why marimo: the notebook is a plain Python file, so a change to it can be read as a diff; it runs as a script
    (`python notebooks/mapping_review.py`), which is how CI tests it; and a cell's result always follows from the cells
    above it, so there is no hidden state from an older run.
    """)
    return


@app.cell(hide_code=True)
def _():
    import os
    import sys
    from pathlib import Path

    import altair as alt
    import duckdb
    import marimo as mo
    import polars as pl

    return Path, alt, duckdb, mo, os, pl, sys


@app.cell(hide_code=True)
def _(Path, duckdb, mo, os, pl, sys):
    snapshot = Path(os.environ.get("KGRAG_SNAPSHOT") or "data_lake/kgrag.duckdb")

    def _problem():
        if not snapshot.is_file():
            return f"There is no snapshot at {snapshot}. Map a task first (kgrag run TASK), or set KGRAG_SNAPSHOT."
        try:
            duckdb.connect(str(snapshot), read_only=True).close()
        except duckdb.Error as error:
            return f"{snapshot} cannot be opened as a DuckDB file ({error}). Publish it again: kgrag run TASK"
        return None

    snapshot_problem = _problem()
    if snapshot_problem and mo.app_meta().mode == "script":
        print(snapshot_problem, file=sys.stderr)
        sys.exit(2)
    mo.stop(snapshot_problem is not None, mo.callout(mo.plain_text(snapshot_problem or ""), kind="danger"))

    def ask(query, **values):
        """Rows of a query. Values are bound as parameters ($name); nothing is ever written into the query's text."""
        # One short connection per question: the file may be replaced between two of them.
        with duckdb.connect(str(snapshot), read_only=True) as connection:
            return pl.from_arrow(connection.sql(query, params=values).to_arrow_table())

    return ask, snapshot, snapshot_problem


@app.cell(hide_code=True)
def _(mo):
    def shown(frame, empty, **options):
        """A table, or a sentence where it has no rows."""
        if frame.is_empty():
            return mo.md(empty)
        return mo.ui.table(frame, selection=None, show_column_summaries=False, **options)

    return (shown,)


@app.cell(hide_code=True)
def _(ask, mo, snapshot, sys):
    tasks = ask("SELECT DISTINCT task FROM attribute_mappings ORDER BY task")["task"].to_list()
    _message = f"The snapshot {snapshot} holds no mapping yet. Map a task: kgrag run TASK"
    if not tasks and mo.app_meta().mode == "script":
        print(_message, file=sys.stderr)
    mo.stop(not tasks, mo.callout(mo.plain_text(_message), kind="warn"))
    task_choice = mo.ui.dropdown(tasks, value=tasks[0], label="Task", searchable=True)
    task_choice
    return task_choice, tasks


@app.cell(hide_code=True)
def _(ask, mo, pl, shown, task_choice):
    task = task_choice.value
    mo.stop(task is None, mo.md("Choose a task."))
    mapping = ask(
        """
        SELECT source_table, source_column, target_table, target_column, decision, round(score, 3) AS score,
               top_fact, reason, source_description
        FROM proposed_mapping WHERE task = $task
        """,
        task=task,
    )
    # Table and column in one cell leave room for the fact; `mapping` keeps the names apart.
    _readable = mapping.select(
        pl.concat_str("source_table", "source_column", separator=" · ").alias("source"),
        pl.concat_str("target_table", "target_column", separator=" · ").fill_null("no match").alias("proposed target"),
        "score",
        pl.col("top_fact").alias("the fact that spoke for it"),
        "reason",
        pl.col("source_description").alias("description of the source"),
    )
    mapped_rows = mapping.filter(pl.col("decision") == "proposed").height
    unmatched_rows = mapping.filter(pl.col("decision") == "no_match").height
    _sources = mapping.select("source_table", "source_column").n_unique()
    mo.vstack(
        [
            mo.md("## What was mapped"),
            mo.hstack(
                [
                    mo.stat(_sources, label="source columns"),
                    mo.stat(mapped_rows, label="proposed pairs"),
                    mo.stat(unmatched_rows, label="without a match"),
                ],
                justify="start",
            ),
            shown(
                _readable,
                "The source schema has no columns.",
                page_size=15,
                wrapped_columns=["source", "proposed target", "the fact that spoke for it", "reason"],
            ),
        ]
    )
    return mapped_rows, mapping, task, unmatched_rows


@app.cell(hide_code=True)
def _(alt, mapping, mo, pl):
    _counts = mapping.group_by("source_table", "decision").len("columns").sort("source_table", "decision")
    by_table_chart = (
        alt.Chart(_counts.with_columns(pl.col("decision").replace("no_match", "no match")))
        .mark_bar()
        .encode(
            x=alt.X("sum(columns):Q", title="source columns", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("source_table:N", title=None, axis=alt.Axis(labelLimit=240)),
            color=alt.Color(
                "decision:N",
                title=None,
                scale=alt.Scale(domain=["proposed", "no match"], range=["#4c78a8", "#d0d0d0"]),
            ),
            tooltip=["source_table", "decision", "columns"],
        )
        .properties(width=480)
    )
    mo.ui.altair_chart(by_table_chart, chart_selection=False, legend_selection=False)
    return (by_table_chart,)


@app.cell(hide_code=True)
def _(ask, mo, task):
    # The choice is the attribute's id: names may hold anything, dots and quotes included.
    _columns = ask(
        """
        SELECT table_name || ' · ' || column_name AS name, attribute_id FROM schema_attributes
        WHERE task = $task AND side = 'source' ORDER BY position
        """,
        task=task,
    )
    _options = {}
    for _name, _attribute in _columns.iter_rows():
        # Two columns may read alike ("a · b" in "c", and so on): the later one gets a number.
        _unique = _name if _name not in _options else f"{_name} ({len(_options) + 1})"
        _options[_unique] = _attribute
    mo.stop(not _options, mo.md("The source schema has no columns."))
    column_choice = mo.ui.dropdown(_options, value=next(iter(_options)), label="Source column", searchable=True)
    mo.vstack([mo.md("## Why\n\nPick a source column to see its candidates and their facts."), column_choice])
    return (column_choice,)


@app.cell(hide_code=True)
def _(ask, column_choice, mo, shown, task):
    mo.stop(column_choice.value is None, mo.md("Choose a column."))
    _attribute = ask(
        """
        SELECT data_type, column_description, table_description, array_to_string(sample_values, ' | ') AS samples
        FROM schema_attributes WHERE task = $task AND attribute_id = $attribute
        """,
        task=task,
        attribute=column_choice.value,
    )
    candidates = ask(
        """
        SELECT m.rank, m.target_table, m.target_column, m.decision, round(m.score, 3) AS score,
               round(m.judge_score, 3) AS judge_score, round(m.blocking_score, 3) AS blocking_score,
               round(m.table_coherence, 3) AS table_coherence, m.parse_status, j.reason AS judge_reason
        FROM attribute_mappings m LEFT JOIN llm_judgments j ON j.task = m.task AND j.pair_id = m.judged_pair_id
        WHERE m.task = $task AND m.source_attribute_id = $attribute AND m.pair_id IS NOT NULL
        ORDER BY m.rank
        """,
        task=task,
        attribute=column_choice.value,
    )
    evidence = ask(
        """
        SELECT m.rank, m.target_table, m.target_column, c.fact.rank AS fact_rank, c.fact.text AS fact,
               coalesce(list_contains(j.cited_facts, c.fact.fact_id), false) AS cited,
               c.fact.kind AS kind, c.fact.method AS method, round(c.fact.score, 3) AS fact_score
        FROM (SELECT task, pair_id, unnest(facts) AS fact FROM ranked_contexts WHERE task = $task) c
        JOIN attribute_mappings m ON m.task = c.task AND m.judged_pair_id = c.pair_id
        LEFT JOIN llm_judgments j ON j.task = c.task AND j.pair_id = c.pair_id
        WHERE m.source_attribute_id = $attribute
        ORDER BY m.rank, fact_rank
        """,
        task=task,
        attribute=column_choice.value,
    )
    _unmatched = ask(
        """
        SELECT reason FROM attribute_mappings
        WHERE task = $task AND source_attribute_id = $attribute AND decision = 'no_match'
        """,
        task=task,
        attribute=column_choice.value,
    )
    mo.vstack(
        [
            shown(_attribute, "Nothing is known about this column."),
            *([mo.plain_text(f"no match: {_unmatched['reason'][0]}")] if _unmatched.height else []),
            mo.md("**Candidates**, best first"),
            shown(candidates, "No pair of this column was judged.", page_size=10, wrapped_columns=["judge_reason"]),
            mo.md("**Facts** from the knowledge graph"),
            shown(evidence, "No fact was near enough to any of its pairs.", page_size=10, wrapped_columns=["fact"]),
        ]
    )
    return candidates, evidence


@app.cell(hide_code=True)
def _(ask, mo, shown, task):
    # The margin of a proposal: how far its score is above the best candidate that was not proposed.
    margins = ask(
        """
        WITH next_best AS (
            SELECT source_attribute_id, max(score) AS score FROM attribute_mappings
            WHERE task = $task AND decision = 'alternative' GROUP BY source_attribute_id
        ), named AS (
            SELECT source_attribute_id,
                   arg_max(target_table || '.' || target_column, score) AS name
            FROM attribute_mappings WHERE task = $task AND decision = 'alternative' GROUP BY source_attribute_id
        )
        SELECT m.source_table, m.source_column, m.target_table, m.target_column, round(m.score, 3) AS score,
               round(m.score - n.score, 3) AS margin, a.name AS next_best
        FROM attribute_mappings m
        LEFT JOIN next_best n USING (source_attribute_id) LEFT JOIN named a USING (source_attribute_id)
        WHERE m.task = $task AND m.decision = 'proposed'
        ORDER BY margin NULLS LAST, m.score
        """,
        task=task,
    )
    unmatched = ask(
        """
        SELECT source_table, source_column, reason FROM proposed_mapping
        WHERE task = $task AND decision = 'no_match'
        """,
        task=task,
    )
    unanswered = ask(
        """
        SELECT source_table, source_column, target_table, target_column, judge, model, parse_status
        FROM llm_judgments WHERE task = $task AND parse_status NOT IN ('parsed', 'recovered')
        ORDER BY ALL
        """,
        task=task,
    )
    mo.vstack(
        [
            mo.md("## What is unsure"),
            mo.md("**Proposals with the smallest margin** over the best candidate that was not proposed"),
            shown(margins, "Nothing is proposed.", page_size=10),
            mo.md("**No match**"),
            shown(unmatched, "Every source column has a proposal.", page_size=10, wrapped_columns=["reason"]),
            mo.md("**Unanswered**: pairs whose judge gave no answer that could be read"),
            shown(unanswered, "Every judged pair has an answer.", page_size=10),
        ]
    )
    return margins, unanswered, unmatched


@app.cell(hide_code=True)
def _(alt, ask, mo, task):
    _scores = ask(
        """
        SELECT score, decision FROM attribute_mappings
        WHERE task = $task AND decision IN ('proposed', 'alternative') AND isfinite(score)
        """,
        task=task,
    )
    score_chart = (
        alt.Chart(_scores)
        .mark_bar()
        .encode(
            x=alt.X("score:Q", bin=alt.Bin(extent=[0, 1], step=0.05), title="score of the pair"),
            y=alt.Y("count():Q", title="pairs", axis=alt.Axis(tickMinStep=1, format="d")),
            color=alt.Color(
                "decision:N",
                title=None,
                scale=alt.Scale(domain=["proposed", "alternative"], range=["#4c78a8", "#d0d0d0"]),
            ),
        )
        .properties(width=480, height=180)
    )
    # Far more pairs are judged than proposed: without an axis per row the proposals would be invisible.
    score_chart = score_chart.facet(row=alt.Row("decision:N", title=None)).resolve_scale(y="independent")
    (
        mo.ui.altair_chart(score_chart, chart_selection=False, legend_selection=False)
        if _scores.height
        else mo.md("No pair was judged.")
    )
    return (score_chart,)


@app.cell(hide_code=True)
def _(ask, mo, shown, task):
    _judges = ask(
        """
        SELECT judge, model, count(*) AS pairs, sum(tokens_in)::BIGINT AS tokens_in,
               sum(tokens_out)::BIGINT AS tokens_out
        FROM llm_judgments WHERE task = $task GROUP BY ALL ORDER BY ALL
        """,
        task=task,
    )
    cost = ask(
        """
        SELECT provider, model, calls, not_answered, tokens_in::BIGINT AS tokens_in, tokens_out::BIGINT AS tokens_out,
               cost_usd, round(latency_s, 1) AS latency_s
        FROM cost_by_model WHERE task = $task ORDER BY ALL
        """,
        task=task,
    )
    _unpriced = ask("SELECT count(*) AS n FROM llm_calls WHERE task = $task AND cost_usd IS NULL", task=task)["n"][0]
    total_cost = float(cost["cost_usd"].sum() or 0.0)
    _note = (
        f"Calls of models without a known price: {_unpriced:,}. They are not part of the sum."
        if _unpriced
        else "No model was called: 0 USD."
        if cost.is_empty()
        else "Every call has a known price."
    )
    mo.vstack(
        [
            mo.md("## What did it cost"),
            mo.stat(f"{total_cost:.4f} USD", label="all calls so far, failed ones included"),
            mo.md(_note),
            shown(cost, "No call to a language model was made for this task."),
            mo.md("**Who judged** the pairs of the present mapping"),
            shown(_judges, "No pair was judged."),
        ]
    )
    return cost, total_cost


@app.cell(hide_code=True)
def _(ask, mo, shown, task):
    metrics = ask(
        """
        SELECT metric, round(value, 3) AS value, round(ci_low, 3) AS ci_low, round(ci_high, 3) AS ci_high, n, meaning
        FROM match_metrics WHERE task = $task
        ORDER BY list_position(['precision', 'recall', 'f1', 'best_f1', 'hit@1', 'hit@3', 'hit@5', 'mrr',
                                'average_precision', 'pair_completeness', 'reduction_ratio'], metric) NULLS LAST, metric
        """,
        task=task,
    )
    misses = ask("SELECT * EXCLUDE (task, pair_id, row_key) FROM match_misses WHERE task = $task", task=task)
    misses_by_stage = ask(
        "SELECT outcome, count(*) AS true_pairs FROM match_misses WHERE task = $task GROUP BY ALL ORDER BY ALL",
        task=task,
    )
    mo.vstack(
        [
            mo.md("## How good is it"),
            shown(
                metrics,
                "This task has no reference: add reference.csv to its folder to measure it.",
                page_size=20,
                wrapped_columns=["meaning"],
            ),
        ]
    )
    return metrics, misses, misses_by_stage


@app.cell(hide_code=True)
def _(alt, metrics, misses, misses_by_stage, mo, pl, shown):
    mo.stop(metrics.is_empty())
    # Shares only: counts of pairs have another scale.
    _shares = metrics.filter(pl.col("value").is_between(0, 1) & pl.col("ci_low").is_not_null())
    _base = alt.Chart(_shares).encode(y=alt.Y("metric:N", title=None, sort=None))
    metric_chart = (
        _base.mark_rule(strokeWidth=2, color="#4c78a8").encode(
            x=alt.X("ci_low:Q", title="value with 95% interval", scale=alt.Scale(domain=[0, 1])), x2="ci_high:Q"
        )
        + _base.mark_point(filled=True, size=70, color="#4c78a8").encode(x="value:Q", tooltip=["metric", "value", "n"])
    ).properties(width=480)
    miss_chart = (
        alt.Chart(misses_by_stage)
        .mark_bar(color="#4c78a8")
        .encode(
            x=alt.X("true_pairs:Q", title="true pairs", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("outcome:N", title=None, sort=["found", "not_proposed", "unanswered", "blocking"]),
        )
        .properties(width=480)
    )
    _lost = misses.filter(pl.col("outcome") != "found")
    mo.vstack(
        [
            *([mo.ui.altair_chart(metric_chart, chart_selection=False)] if _shares.height else []),
            mo.md("**True pairs by the stage** at which they were found or lost"),
            mo.ui.altair_chart(miss_chart, chart_selection=False),
            shown(_lost, "No true pair was lost.", page_size=15),
        ]
    )
    return metric_chart, miss_chart


@app.cell(hide_code=True)
def _(mapped_rows, mo, task, total_cost, unmatched_rows):
    # What a script's log should say.
    if mo.app_meta().mode == "script":
        print(f"{task}: {mapped_rows} proposed, {unmatched_rows} without a match, {total_cost:.4f} USD")
    return


if __name__ == "__main__":
    app.run()
