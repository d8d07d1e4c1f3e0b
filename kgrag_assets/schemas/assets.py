"""The assets of the schemas room: attributes, reference and rejected rows of a task, all from one reading."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from kgrag_assets.automation.inputs import TASK_FILES
from kgrag_assets.automation.metadata import lineage, markdown_table
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.automation.specs import task_table
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.reference_entity_links import REFERENCE_ENTITY_LINKS
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.reading import read_task
from kgrag_assets.schemas.task_folder import load_task

CODE_VERSION = "schemas-3"


def _spec(table: Table, description: str) -> dg.AssetSpec:
    return task_table(table, description, group="schemas", deps=[TASK_FILES], code_version=CODE_VERSION)


def build() -> list[dg.AssetsDefinition]:
    """Make the assets of this room."""

    @dg.multi_asset(
        name="read_schemas",
        specs=[
            _spec(SCHEMA_ATTRIBUTES, "The columns of both schemas of a task, with types, descriptions and samples."),
            _spec(REFERENCE_CORRESPONDENCES, "The true pairs that the task's reference file states; may be empty."),
            _spec(REFERENCE_ENTITY_LINKS, "Entities that the attributes speak of, by a person's word; may be empty."),
            _spec(SCHEMA_REJECTS, "Rows of the task's files that were not taken, each with its place and reason."),
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "columns_described",
                asset="schema_attributes",
                description="At least half of the columns of each side carry a description: without one, only the "
                "name speaks.",
            ),
            dg.AssetCheckSpec(
                "no_row_rejected", asset="schema_rejects", description="Every row of the task's files was taken."
            ),
        ],
    )
    def read_schemas(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> Iterator[dg.MaterializeResult]:
        task = context.partition_key
        with explained_failures(SchemaError), lake.lock("read_schemas", task):
            read = read_task(load_task(lake.paths, task))
            yield store(
                lake,
                SCHEMA_ATTRIBUTES,
                task,
                read.attributes,
                asset_key="schema_attributes",
                check_results=[_columns_described(read.attributes)],
                tables=markdown_table(_tables(read.attributes)),
            )
            yield store(
                lake,
                REFERENCE_CORRESPONDENCES,
                task,
                read.reference,
                asset_key="reference_correspondences",
                correspondences=markdown_table(read.reference.drop("task", "pair_id", "row_key")),
                column_lineage=lineage(
                    {
                        f"{side}_{part}": [("schema_attributes", f"{part}_name")]
                        for side in ("source", "target")
                        for part in ("table", "column")
                    }
                ),
            )
            yield store(
                lake,
                REFERENCE_ENTITY_LINKS,
                task,
                read.entity_links,
                asset_key="reference_entity_links",
                links=markdown_table(read.entity_links.drop("task", "attribute_id", "row_key")),
                column_lineage=lineage(
                    {
                        name: [("schema_attributes", name)]
                        for name in ("side", "attribute_id", "table_name", "column_name")
                    }
                ),
            )
            yield store(
                lake,
                SCHEMA_REJECTS,
                task,
                read.rejects,
                asset_key="schema_rejects",
                check_results=[
                    dg.AssetCheckResult(
                        check_name="no_row_rejected",
                        asset_key="schema_rejects",
                        passed=read.rejects.is_empty(),
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"rejected": read.rejects.height},
                    )
                ],
                rejected=markdown_table(read.rejects.select("file", "row", "reason", "content")),
            )

    return [read_schemas]


def _tables(attributes: pl.DataFrame) -> pl.DataFrame:
    return (
        attributes.group_by("side", "table_name", maintain_order=True)
        .agg(
            pl.len().alias("columns"),
            (pl.col("column_description") != "").sum().alias("described"),
            (pl.col("sample_values").list.len() > 0).sum().alias("with samples"),
        )
        .sort("side", "table_name")
    )


def _columns_described(attributes: pl.DataFrame) -> dg.AssetCheckResult:
    shares = attributes.group_by("side").agg((pl.col("column_description") != "").mean().alias("share")).sort("side")
    by_side = {str(side): float(share) for side, share in shares.iter_rows()}
    return dg.AssetCheckResult(
        check_name="columns_described",
        asset_key="schema_attributes",
        passed=all(share >= 0.5 for share in by_side.values()),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={f"{side}_described_share": share for side, share in by_side.items()},
    )
