"""The assets of the indexing room: embeddings by bucket and task, and the vector indexes over the graph."""

import dagster as dg

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS
from kgrag_assets.automation.metadata import lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS, bucket_names, bucket_partitions
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import described, explained_failures, store
from kgrag_assets.indexing.embedding import embed_rows, wanted_attributes
from kgrag_assets.indexing.entity_text import TEXT_VERSION as ENTITY_TEXT_VERSION
from kgrag_assets.indexing.graph_embedder import FIRST_STAGE, graph_texts
from kgrag_assets.indexing.graph_embedding import UPSTREAM, embed_partition, reachable_triples
from kgrag_assets.indexing.index_assets import index_assets
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.models.first_stage import FirstStage
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.reachable_entities import REACHABLE_ENTITIES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table, TableError
from kgrag_assets.schemas.attribute_text import TEXT_VERSION as ATTRIBUTE_TEXT_VERSION
from kgrag_assets.settings import Settings


def build(settings: Settings, model_id: str, graph_model: str) -> list[dg.AssetsDefinition]:
    """Make the assets of this room.

    Args:
        settings: the settings.
        model_id: the embedder of attributes, part of the code version.
        graph_model: what is known of that of the graph's rows, which may be a cheap first stage yet to be fitted.
    """
    buckets = bucket_partitions(settings.graph.buckets)
    model_kinds = {
        "pytorch" if settings.embedder.kind == "sentence-transformers" else settings.embedder.kind,
        "parquet",
    }

    first_stage = settings.embedder.first_stage == "static"
    reachable = settings.graph.embed_triples == "reachable"

    def embeddings(table: Table, description: str) -> dg.AssetsDefinition:
        upstream = UPSTREAM[table.name]
        narrowed = reachable and table is TRIPLE_EMBEDDINGS
        more = [*([FIRST_STAGE] if first_stage else []), *([REACHABLE_ENTITIES.name] if narrowed else [])]

        @dg.asset(
            name=table.name,
            deps=[upstream.name, *more],
            partitions_def=buckets,
            group_name="indexing",
            code_version=f"{ENTITY_TEXT_VERSION}/{graph_model}",
            owners=OWNERS,
            kinds=model_kinds,
            automation_condition=when_content_changed(),
            description=description,
            metadata=table_metadata(table),
        )
        def embedded(
            context: dg.AssetExecutionContext,
            lake: dg.ResourceParam[Lake],
            graph_embedder: dg.ResourceParam[Embedder],
            progress: dg.ResourceParam[Progress],
        ) -> dg.MaterializeResult:
            partition = context.partition_key
            failures = explained_failures(EmbeddingError, ModelUnavailableError, TableError)
            with failures, lake.lock(table.name, partition):
                done = embed_partition(
                    lake,
                    table,
                    partition,
                    graph_embedder,
                    checkpoint=settings.embedder.checkpoint_texts,
                    start_progress=lambda total: progress.track(f"{table.name} {partition}", total),
                    chosen=reachable_triples(lake) if narrowed else None,
                )
                return described(
                    done.written,
                    texts_embedded=done.texts_embedded,
                    vectors_reused=done.vectors_reused,
                    model=graph_embedder.model_id,
                    sample=markdown_table(lake.scan(table, partition, ["text"]).head(8).collect(), limit=8),
                    column_lineage=_column_lineage(upstream),
                )

        return embedded

    entity_embeddings = embeddings(
        ENTITY_EMBEDDINGS,
        "A vector per entity, of its label, aliases and description. Only changed texts are embedded.",
    )
    triple_embeddings = embeddings(
        TRIPLE_EMBEDDINGS,
        "A vector per triple, verbalised from its labels. Only changed texts are embedded.",
    )

    @dg.asset(
        deps=[SCHEMA_ATTRIBUTES.name],
        partitions_def=TASKS,
        group_name="indexing",
        code_version=f"{ATTRIBUTE_TEXT_VERSION}/{model_id}",
        owners=OWNERS,
        kinds=model_kinds,
        automation_condition=when_content_changed(),
        description="Vectors of each attribute: of its name alone, and of its name with the descriptions.",
        metadata=table_metadata(ATTRIBUTE_EMBEDDINGS),
    )
    def attribute_embeddings(
        context: dg.AssetExecutionContext,
        lake: dg.ResourceParam[Lake],
        embedder: dg.ResourceParam[Embedder],
        progress: dg.ResourceParam[Progress],
    ) -> dg.MaterializeResult:
        partition, table = context.partition_key, ATTRIBUTE_EMBEDDINGS
        failures = explained_failures(EmbeddingError, ModelUnavailableError, TableError)
        with failures, lake.lock(table.name, partition):
            done = embed_rows(
                wanted_attributes(lake.read(SCHEMA_ATTRIBUTES, partition), embedder.model_id),
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
                column_lineage=_column_lineage(SCHEMA_ATTRIBUTES),
            )

    @dg.asset(
        name=FIRST_STAGE,
        deps=[KG_ENTITIES.name, KG_TRIPLES.name],
        group_name="indexing",
        code_version=graph_model,
        owners=OWNERS,
        kinds={"numpy"},
        automation_condition=when_content_changed(),
        description="A static model whose vectors are fitted to those of the full model, on a sample of the graph's "
        "texts. It is fitted once; a graph that changes keeps it.",
    )
    def first_stage_model(
        lake: dg.ResourceParam[Lake],
        graph_embedder: dg.ResourceParam[Embedder],
        progress: dg.ResourceParam[Progress],
    ) -> dg.MaterializeResult:
        if not isinstance(graph_embedder, FirstStage):
            raise dg.Failure(description="embedder.first_stage is static, and the graph's embedder is another")
        failures = explained_failures(EmbeddingError, ModelUnavailableError)
        with failures, lake.lock(FIRST_STAGE):
            fitted = not graph_embedder.ready
            size = settings.embedder.first_stage_texts
            texts = graph_texts(lake, bucket_names(settings.graph.buckets), size)
            graph_embedder.fit(texts, progress.track(FIRST_STAGE, size) if fitted else None)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(graph_embedder.model_id),
                metadata={"model": graph_embedder.model_id, "file_written": fitted, "texts": size},
            )

    return [
        *([first_stage_model] if first_stage else []),
        entity_embeddings,
        triple_embeddings,
        attribute_embeddings,
        *index_assets(settings, graph_model),
    ]


def _column_lineage(upstream: Table) -> dg.TableColumnLineage:
    return lineage({"text": [(upstream.name, column) for column in _TEXT_COLUMNS[upstream.name]]})


# The columns that an embedded text is made of.
_TEXT_COLUMNS = {
    KG_ENTITIES.name: ["label", "aliases", "description"],
    KG_TRIPLES.name: ["head_label", "relation_label", "tail_label"],
    SCHEMA_ATTRIBUTES.name: ["table_name", "column_name", "table_description", "column_description"],
}
