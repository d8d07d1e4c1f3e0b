"""The assets of the vector indexes over the graph, embedded or served."""

from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS
from kgrag_assets.automation.metadata import markdown_table
from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import explained_failures
from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.manifest import IndexFileError
from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.indexing.qdrant_server import IndexServerError
from kgrag_assets.indexing.recall import recall_at_k
from kgrag_assets.indexing.recall_scan import recall_against_scan
from kgrag_assets.indexing.served import bring_served_index_up_to_date, collection_of, place_of
from kgrag_assets.indexing.stored_vectors import StoredVectors, stored_vectors
from kgrag_assets.indexing.update import UpdateReport, open_previous, update_index
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.rows.embeddings import ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.table import Table, TableError
from kgrag_assets.settings import IndexSettings, Settings

RECALL_SAMPLE = 200
RECALL_FLOOR = 0.95
NEAREST_SHOWN = 10
# What says where an index lies, and nothing of what it holds.
ADDRESS = {"url", "api_key_env"}


def index_assets(settings: Settings, graph_model: str) -> list[dg.AssetsDefinition]:
    """Make the assets of the two indexes; ``graph_model`` is what is known of the embedder of the graph's rows."""
    parameters = settings.index
    names = bucket_names(settings.graph.buckets)

    def index(name: str, table: Table, id_column: str, description: str) -> dg.AssetsDefinition:

        @dg.asset(
            name=name,
            deps=[table.name],
            group_name="indexing",
            code_version=f"hnsw-2/{parameters.model_dump_json(exclude=ADDRESS)}/{graph_model}",
            owners=OWNERS,
            kinds={parameters.kind},
            automation_condition=when_content_changed(),
            description=description,
            check_specs=[
                dg.AssetCheckSpec(
                    "recall_at_10",
                    asset=name,
                    blocking=True,
                    description=f"The index finds at least {RECALL_FLOOR:.0%} of the true 10 nearest vectors.",
                )
            ],
        )
        def vector_index(
            context: dg.AssetExecutionContext,
            lake: dg.ResourceParam[Lake],
            graph_embedder: dg.ResourceParam[Embedder],
            progress: dg.ResourceParam[Progress],
        ) -> dg.MaterializeResult:
            failures = explained_failures(TableError, IndexFileError, IndexServerError, ModelUnavailableError)
            with failures, lake.lock(name), stored_vectors(lake, table, names, id_column) as stored:
                searched, report, written, recall = _updated(
                    context, lake, name, stored, graph_embedder, progress, parameters
                )
                nearest = _nearest(lake, table, id_column, searched, stored)
                return dg.MaterializeResult(
                    data_version=dg.DataVersion(searched.data_version),
                    metadata={
                        "dagster/row_count": len(stored),
                        "rows_kept": report.kept,
                        "rows_computed": report.added + report.changed,
                        "rows_removed": report.removed + report.changed,
                        "base_rebuilt": report.rebuilt,
                        "file_written": written,
                        "recall_at_10": recall,
                        "nearest": markdown_table(nearest),
                        "path": _place(lake, name, parameters),
                    },
                    check_results=[
                        dg.AssetCheckResult(
                            check_name="recall_at_10",
                            passed=recall >= RECALL_FLOOR,
                            metadata={"recall_at_10": recall, "sample": min(RECALL_SAMPLE, len(stored))},
                        )
                    ],
                )

        return vector_index

    return [
        index("entity_index", ENTITY_EMBEDDINGS, "entity_id", "Nearest entities by vector."),
        index("triple_index", TRIPLE_EMBEDDINGS, "triple_id", "Nearest triples by vector."),
    ]


def _updated(
    context: dg.AssetExecutionContext,
    lake: Lake,
    name: str,
    stored: StoredVectors,
    embedder: Embedder,
    progress: Progress,
    parameters: IndexSettings,
) -> tuple[VectorIndex, UpdateReport, bool, float]:
    """Bring an index up to date; return it, what was done, whether anything was written, and its recall@10."""
    if parameters.kind == "qdrant":
        served, report = bring_served_index_up_to_date(parameters, name, stored, embedder)
        recall = recall_at_k(served, stored, stored.ids, sample=RECALL_SAMPLE)
        return served, report, bool(report.added or report.changed or report.removed), recall
    folder = lake.paths.arrays(name)
    updated = update_index(
        _previous(context, folder),
        ids=stored.ids,
        row_keys=stored.row_keys,
        vectors=stored,
        model_id=embedder.model_id,
        settings=parameters,
        start_progress=lambda total: progress.track(name, total),
    )
    if updated.changed:
        replace_folder(folder, updated.index.save)
    if updated.report.rebuilt:
        recall = recall_at_k(updated.index, stored, stored.ids, sample=RECALL_SAMPLE)
    else:
        recall = recall_against_scan(updated.index, stored.sample(RECALL_SAMPLE))
    return updated.index, updated.report, updated.changed, recall


def _place(lake: Lake, name: str, parameters: IndexSettings) -> dg.MetadataValue:
    if parameters.kind == "qdrant":
        return dg.MetadataValue.text(f"{place_of(parameters).shown}, {collection_of(name)}")
    return dg.MetadataValue.path(str(lake.paths.arrays(name)))


def _nearest(lake: Lake, table: Table, id_column: str, index: VectorIndex, stored: StoredVectors) -> pl.DataFrame:
    """Show what a few rows, evenly spread, have as their nearest other row."""
    schema = {"text": pl.String, "nearest": pl.String, "cosine": pl.Float64}
    places = np.unique(np.linspace(0, len(stored) - 1, min(NEAREST_SHOWN, len(stored))).astype(np.int64))
    if not len(stored):
        return pl.DataFrame(schema=schema)
    hits = index.search(stored(places), 2)
    pairs = []
    for row, place in enumerate(places.tolist()):
        own = stored.ids[place]
        other = next(((hit, score) for hit, score in hits.of(row) if hit != own), None)
        if other is not None:
            pairs.append((own, *other))
    wanted = pl.DataFrame(
        {id_column: list({entry for pair in pairs for entry in pair[:2]})}, schema={id_column: pl.String}
    )
    rows = [lake.scan(table, name, [id_column, "text"]) for name in lake.partitions(table)]
    texts = dict(pl.concat(rows).join(wanted.lazy(), on=id_column, how="semi").collect().iter_rows())
    shown = [(texts[own], texts[other], score) for own, other, score in pairs]
    return pl.DataFrame(shown, schema=schema, orient="row")


def _previous(context: dg.AssetExecutionContext, folder: Path) -> HnswIndex | None:
    """Open the index at hand; one whose files do not agree is built anew, which costs time and loses nothing."""
    try:
        return open_previous(folder)
    except IndexFileError as error:
        context.log.warning(f"the index is built anew: {error}")
        return None
