"""The asset of the judging room: a judgment for each candidate pair."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import histogram, lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.judging.choice import judge_version, make_judge
from kgrag_assets.judging.stage import judge_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES, LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the asset of this room."""

    @dg.asset(
        deps=["schema_attributes", "attribute_groups", "candidate_pairs", "ranked_contexts", TASK_OPTIONS],
        partitions_def=TASKS,
        group_name="judging",
        code_version=judge_version(settings),
        owners=OWNERS,
        kinds={settings.judging.judge if settings.judging.judge != "offline" else "python", "parquet"},
        automation_condition=when_content_changed(),
        description="What the judge says about each candidate pair, with its facts in view. An answered call is kept "
        "in the ledger at once; a pair without a readable answer stays, with its status.",
        metadata=table_metadata(LLM_JUDGMENTS),
        check_specs=[
            dg.AssetCheckSpec(
                "answers_read", asset="llm_judgments", description="At least 95% of the pairs have a readable answer."
            )
        ],
    )
    def llm_judgments(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake], progress: dg.ResourceParam[Progress]
    ) -> dg.MaterializeResult:
        task = context.partition_key
        failures = explained_failures(SchemaError, SettingsError, ModelUnavailableError)
        with failures, lake.lock("llm_judgments", task), CallLedger(lake.paths.ledger) as ledger:
            options = task_settings(lake, settings, task)
            judged = judge_task(
                attributes=lake.read(SCHEMA_ATTRIBUTES, task),
                groups=lake.read(ATTRIBUTE_GROUPS, task),
                candidates=lake.read(CANDIDATE_PAIRS, task),
                contexts=lake.read(RANKED_CONTEXTS, task),
                existing=lake.reusable(LLM_JUDGMENTS, task),
                judge=make_judge(options, ledger),
                values=options.judging.values,
                start_progress=lambda total: progress.track(f"judging {task}", total),
            )
            frame = judged.frame
            answered = frame.filter(pl.col("parse_status").is_in(ANSWERED_STATUSES)).height
            share = answered / frame.height if frame.height else 1.0
            return store(
                lake,
                LLM_JUDGMENTS,
                task,
                frame,
                pairs_judged_now=judged.computed,
                calls=frame["request_hash"].drop_nulls().n_unique(),
                gate=markdown_table(frame.group_by("gate").len("pairs").sort("gate")),
                conflicts=int(frame["conflict"].fill_null(value=False).sum()),
                disagreements=int(frame["disagreement"].fill_null(value=False).sum()),
                unknown_citations=int((frame["unknown_citations"].list.len() > 0).sum()),
                statuses=markdown_table(frame.group_by("parse_status").len("pairs").sort("parse_status")),
                score_histogram=histogram(frame["score"]),
                most_certain=markdown_table(
                    frame.sort("score", descending=True, nulls_last=True).select(
                        "source_table", "source_column", "target_table", "target_column", "score", "reason"
                    )
                ),
                tokens_in=int(frame["tokens_in"].sum()),
                tokens_out=int(frame["tokens_out"].sum()),
                cost_usd=float(frame["cost_usd"].fill_null(0.0).sum()),
                check_results=[
                    dg.AssetCheckResult(
                        check_name="answers_read",
                        passed=share >= 0.95,
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"answered_share": share},
                    )
                ],
                column_lineage=lineage(
                    {
                        "cited_facts": [("ranked_contexts", "facts")],
                        "context_key": [("ranked_contexts", "row_key")],
                    }
                ),
            )

    return [llm_judgments]
