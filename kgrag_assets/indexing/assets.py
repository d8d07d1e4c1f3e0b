"""The assets of the indexing room: embeddings by bucket and task, and the vector indexes over the graph."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS
from kgrag_assets.automation.metadata import lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS, bucket_names, bucket_partitions
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.indexing.embedding import embed_rows, wanted_attributes, wanted_entities, wanted_triples
from kgrag_assets.indexing.entity_text import TEXT_VERSION as ENTITY_TEXT_VERSION
from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.manifest import IndexFileError
from kgrag_assets.indexing.recall import recall_at_k
from kgrag_assets.indexing.update import distinct_rows, open_previous, update_index
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS, vectors_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import ROW_KEY, Table, TableError
from kgrag_assets.schemas.attribute_text import TEXT_VERSION as ATTRIBUTE_TEXT_VERSION
from kgrag_assets.settings import Settings

RECALL_SAMPLE = 200
RECALL_FLOOR = 0.95
NEAREST_SHOWN = 10


def build(settings: Settings, model_id: str) -> list[dg.AssetsDefinition]:
    """Make the assets of this room; ``model_id`` is the embedder's, part of the code version."""
    buckets = bucket_partitions(settings.graph.buckets)

    def embeddings(
        table: Table,
        upstream: Table,
        wanted: Callable[[pl.DataFrame, str], pl.DataFrame],
        partitions: dg.PartitionsDefinition[str],
        description: str,
        text_version: str,
    ) -> dg.AssetsDefinition:
        @dg.asset(
            name=table.name,
            deps=[upstream.name],
            partitions_def=partitions,
            group_name="indexing",
            code_version=f"{text_version}/{model_id}",
            owners=OWNERS,
            kinds={
                "pytorch" if settings.embedder.kind == "sentence-transformers" else settings.embedder.kind,
                "parquet",
            },
            automation_condition=when_content_changed(),
            description=description,
            metadata=table_metadata(table),
        )
        def embedded(
            context: dg.AssetExecutionContext,
            lake: dg.ResourceParam[Lake],
            embedder: dg.ResourceParam[Embedder],
            progress: dg.ResourceParam[Progress],
        ) -> dg.MaterializeResult:
            partition = context.partition_key
            failures = explained_failures(EmbeddingError, ModelUnavailableError, TableError)
            with failures, lake.lock(table.name, partition):
                rows = wanted(lake.read(upstream, partition), embedder.model_id)
                done = embed_rows(
                    rows,
                    lake.read(table, partition),
                    lake.read_parts(table, partition),
                    embedder,
                    table=table,
                    checkpoint=settings.embedder.checkpoint_texts,
                    save_part=lambda part: lake.write_part(table, partition, part),
                    start_progress=lambda total: progress.track(f"{table.name} {partition}", total),
                )
                return store(
                    lake,
                    table,
                    partition,
                    done.frame,
                    texts_embedded=done.texts_embedded,
                    vectors_reused=done.vectors_reused,
                    model=embedder.model_id,
                    sample=markdown_table(done.frame.select("text"), limit=8),
                    column_lineage=lineage({"text": [(upstream.name, name) for name in _text_columns(upstream)]}),
                )

        return embedded

    entity_embeddings = embeddings(
        ENTITY_EMBEDDINGS,
        KG_ENTITIES,
        wanted_entities,
        buckets,
        "A vector per entity, of its label, aliases and description. Only changed texts are embedded.",
        ENTITY_TEXT_VERSION,
    )
    triple_embeddings = embeddings(
        TRIPLE_EMBEDDINGS,
        KG_TRIPLES,
        wanted_triples,
        buckets,
        "A vector per triple, verbalised from its labels. Only changed texts are embedded.",
        ENTITY_TEXT_VERSION,
    )
    attribute_embeddings = embeddings(
        ATTRIBUTE_EMBEDDINGS,
        SCHEMA_ATTRIBUTES,
        wanted_attributes,
        TASKS,
        "Vectors of each attribute: of its name alone, and of its name with the descriptions.",
        ATTRIBUTE_TEXT_VERSION,
    )

    def index(name: str, table: Table, id_column: str, description: str) -> dg.AssetsDefinition:
        parameters = settings.index

        @dg.asset(
            name=name,
            deps=[table.name],
            group_name="indexing",
            code_version=f"hnsw-1/{parameters.model_dump_json()}/{model_id}",
            owners=OWNERS,
            kinds={"faiss"},
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
        def vector_index(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
            with explained_failures(TableError, IndexFileError), lake.lock(name):
                rows = distinct_rows(lake.read_all(table, bucket_names(settings.graph.buckets)), id_column)
                vectors = vectors_of(rows)
                folder = lake.paths.arrays(name)
                previous = _previous(context, folder)
                updated = update_index(
                    previous,
                    ids=rows[id_column].to_list(),
                    row_keys=rows[ROW_KEY].to_list(),
                    vectors=vectors,
                    model_id=model_id,
                    settings=parameters,
                )
                if updated.changed:
                    replace_folder(folder, updated.index.save)
                recall = recall_at_k(updated.index, vectors, rows[id_column].to_list(), sample=RECALL_SAMPLE)
                report = updated.report
                return dg.MaterializeResult(
                    data_version=dg.DataVersion(updated.index.data_version),
                    metadata={
                        "dagster/row_count": rows.height,
                        "rows_kept": report.kept,
                        "rows_computed": report.added + report.changed,
                        "rows_removed": report.removed + report.changed,
                        "base_rebuilt": report.rebuilt,
                        "file_written": updated.changed,
                        "recall_at_10": recall,
                        "nearest": markdown_table(_nearest(updated.index, rows, id_column, vectors)),
                        "path": dg.MetadataValue.path(str(folder)),
                    },
                    check_results=[
                        dg.AssetCheckResult(
                            check_name="recall_at_10",
                            passed=recall >= RECALL_FLOOR,
                            metadata={"recall_at_10": recall, "sample": min(RECALL_SAMPLE, rows.height)},
                        )
                    ],
                )

        return vector_index

    return [
        entity_embeddings,
        triple_embeddings,
        attribute_embeddings,
        index("entity_index", ENTITY_EMBEDDINGS, "entity_id", "Nearest entities by vector: FAISS HNSW with a delta."),
        index("triple_index", TRIPLE_EMBEDDINGS, "triple_id", "Nearest triples by vector: FAISS HNSW with a delta."),
    ]


def _nearest(index: HnswIndex, rows: pl.DataFrame, id_column: str, vectors: np.ndarray) -> pl.DataFrame:
    """Show what a few rows, evenly spread, have as their nearest other row."""
    places = np.unique(np.linspace(0, rows.height - 1, min(NEAREST_SHOWN, rows.height)).astype(np.int64))
    texts = dict(rows.select(id_column, "text").iter_rows())
    shown = []
    for query in places.tolist():
        own = rows[id_column][query]
        hits = index.search(vectors[query : query + 1], 2).of(0)
        other = next(((hit, score) for hit, score in hits if hit != own), None)
        if other is not None:
            shown.append((texts[own], texts[other[0]], other[1]))
    return pl.DataFrame(shown, schema={"text": pl.String, "nearest": pl.String, "cosine": pl.Float64}, orient="row")


def _previous(context: dg.AssetExecutionContext, folder: Path) -> HnswIndex | None:
    """Open the index at hand; one whose files do not agree is built anew, which costs time and loses nothing."""
    try:
        return open_previous(folder)
    except IndexFileError as error:
        context.log.warning(f"the index is built anew: {error}")
        return None


def _text_columns(table: Table) -> list[str]:
    by_table = {
        KG_ENTITIES.name: ["label", "aliases", "description"],
        KG_TRIPLES.name: ["head_label", "relation_label", "tail_label"],
        SCHEMA_ATTRIBUTES.name: ["table_name", "column_name", "table_description", "column_description"],
    }
    return by_table[table.name]
