"""Computing the cells of the ablation report: one after the other, each stage once for all cells that share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from kgrag_assets.evaluation.ablation_cells import NO_RETRIEVAL, Cell
from kgrag_assets.evaluation.metrics import METRICS_VERSION, evaluate
from kgrag_assets.judging.choice import judge_version, make_judge
from kgrag_assets.judging.stage import judge_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.mapping.assemble import MAPPING_VERSION, map_task
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.ranking.rank import RANKER_VERSION, rank_contexts
from kgrag_assets.ranking.scorers import make_scorer
from kgrag_assets.retrieval.assemble import queries_of, retrieve_task
from kgrag_assets.retrieval.opening import open_retrievers
from kgrag_assets.retrieval.protocol import Retriever
from kgrag_assets.retrieval.spending import spent_on
from kgrag_assets.rows.ablation_report import ABLATION_REPORT, CELL_METRICS
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.keys import data_version_of, key_of
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import ROW_KEY, Table, data_version
from kgrag_assets.settings import Settings

ABLATION_VERSION = "ablation-1"

_INPUTS = (SCHEMA_ATTRIBUTES, ATTRIBUTE_GROUPS, CANDIDATE_PAIRS, REFERENCE_CORRESPONDENCES)


@dataclass
class _Pool:
    """Rows of one stage that some cell computed, or that the task itself has: equal keys mean equal rows."""

    table: Table
    frame: pl.DataFrame

    def add(self, frame: pl.DataFrame) -> None:
        new = frame.join(self.frame.select(ROW_KEY), on=ROW_KEY, how="anti").unique(ROW_KEY, maintain_order=True)
        if new.height:
            self.frame = pl.concat([self.frame, new])


@dataclass
class AblationRun:
    """Computes cells of one task over what its lake has read, blocked and indexed.

    Retrieved subgraphs, ranked contexts and judgments are shared between cells by their row keys, and with the task's
    own; a language model's answers are in the ledger besides.
    """

    lake: Lake
    settings: Settings
    task: str
    embedder: Embedder
    ledger: CallLedger
    _inputs: dict[str, pl.DataFrame] = field(default_factory=dict)
    _pools: dict[str, _Pool] = field(default_factory=dict)
    _existing: pl.DataFrame = field(default_factory=ABLATION_REPORT.empty)
    _retrievers: dict[tuple[str, str, int, int], Sequence[Retriever]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._inputs = {table.name: self.lake.read(table, self.task) for table in _INPUTS}
        self._pools = {
            table.name: _Pool(table, self.lake.read(table, self.task))
            for table in (RETRIEVED_SUBGRAPHS, RANKED_CONTEXTS, LLM_JUDGMENTS)
        }

    def run(
        self, cells: Sequence[Cell], existing: pl.DataFrame, on_cell: Callable[[pl.DataFrame], None]
    ) -> pl.DataFrame:
        """Compute the cells that do not stand already, in order.

        Args:
            cells: the cells.
            existing: rows of ``ablation_report`` as they are.
            on_cell: called with all rows so far after each computed cell, so that an interrupted run goes on there.

        Returns:
            Rows of ``ablation_report``, one for each cell, in order.

        Raises:
            RetrievalError, KnowledgeError, ModelUnavailableError and so on: as the stages themselves.
        """
        known = {row[ROW_KEY]: row for row in existing.iter_rows(named=True)}
        self._existing = existing
        rows: list[dict[str, object]] = []
        for cell in cells:
            key = self.key(cell)
            row = known.get(key)
            if row is None:
                row = {**self._row(cell), ROW_KEY: key}
                rows.append(row)
                on_cell(ABLATION_REPORT.frame(rows))
            else:
                rows.append(row)
        return ABLATION_REPORT.frame(rows)

    def beside(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return computed cells with those of the report before that they do not replace."""
        return pl.concat([frame, self._existing.join(frame, on=("study", "cell"), how="anti")])

    def key(self, cell: Cell) -> str:
        """Hash everything that decides a cell: inputs, graph, parts and versions; nothing is computed for it."""
        settings = cell.settings(self.settings)
        queries = queries_of(self._inputs[SCHEMA_ATTRIBUTES.name], self._inputs[CANDIDATE_PAIRS.name])
        retrieved = [retriever.key(query) for retriever in self._opened(cell) for query in queries]
        return key_of(
            ABLATION_VERSION,
            cell.study,
            cell.name,
            [data_version(self._inputs[table.name]) for table in _INPUTS],
            data_version_of(retrieved),
            settings.retrieval.fusion,
            RANKER_VERSION,
            make_scorer(settings.ranking, self.embedder).version,
            settings.ranking.model_dump_json(),
            judge_version(settings),
            settings.judging.model_dump_json(),
            MAPPING_VERSION,
            settings.mapping.model_dump_json(),
            METRICS_VERSION,
            settings.evaluation.model_dump_json(),
        )

    def _opened(self, cell: Cell) -> Sequence[Retriever]:
        if cell.retrieval == NO_RETRIEVAL:
            return ()
        place = (cell.query_form, cell.retrieval, cell.max_hops, cell.top_k)
        if place not in self._retrievers:
            settings = cell.settings(self.settings)
            self._retrievers[place] = open_retrievers(self.lake, settings, self.task, self.embedder, ledger=self.ledger)
        return self._retrievers[place]

    def _row(self, cell: Cell) -> dict[str, object]:
        settings = cell.settings(self.settings)
        attributes, groups, candidates, reference = (self._inputs[table.name] for table in _INPUTS)
        subgraphs = self._subgraphs(cell, settings)
        contexts = rank_contexts(
            attributes,
            subgraphs,
            candidates,
            settings.ranking,
            make_scorer(settings.ranking, self.embedder),
            self._pools[RANKED_CONTEXTS.name].frame,
        ).frame
        self._pools[RANKED_CONTEXTS.name].add(contexts)
        judge = make_judge(settings, self.ledger)
        judgments = judge_task(
            attributes=attributes,
            groups=groups,
            candidates=candidates,
            contexts=contexts,
            existing=self._pools[LLM_JUDGMENTS.name].frame,
            judge=judge,
            values=settings.judging.values,
            start_progress=lambda _total: lambda _done: None,
        ).frame
        self._pools[LLM_JUDGMENTS.name].add(judgments)
        mapping = map_task(attributes, groups, candidates, judgments, contexts, settings.mapping)
        metrics = evaluate(mapping, candidates, attributes, reference, settings.evaluation)
        spent = self._spent(subgraphs, judgments)
        return {
            "task": self.task,
            "cell": cell.name,
            "study": cell.study,
            "query_form": cell.query_form,
            "retrieval": cell.retrieval,
            "ranking": cell.ranking,
            "top_n": cell.top_n,
            "max_hops": cell.max_hops,
            "top_k": cell.top_k,
            "gate": cell.gate,
            "gate_threshold": cell.gate_threshold,
            "judge": cell.judge,
            "model": judge.model,
            "pairs_judged": judgments.height,
            "pairs_with_facts": int((contexts["facts"].list.len() > 0).sum()),
            "metrics": metrics.filter(pl.col("metric").is_in(CELL_METRICS))
            .select("metric", "value", "ci_low", "ci_high")
            .to_dicts(),
            **spent,
        }

    def _subgraphs(self, cell: Cell, settings: Settings) -> pl.DataFrame:
        attributes, candidates = self._inputs[SCHEMA_ATTRIBUTES.name], self._inputs[CANDIDATE_PAIRS.name]
        pool = self._pools[RETRIEVED_SUBGRAPHS.name]
        if cell.retrieval == NO_RETRIEVAL:
            return RETRIEVED_SUBGRAPHS.empty()
        found = retrieve_task(attributes, candidates, self._opened(cell), pool.frame, settings=settings.retrieval).frame
        pool.add(found)
        return found

    def _spent(self, subgraphs: pl.DataFrame, judgments: pl.DataFrame) -> dict[str, object]:
        """Add up what the cell's calls cost, of retrieval and judging, whenever they were asked."""
        retrieved = spent_on(subgraphs, self.ledger)
        judging = judgments["request_hash"].drop_nulls().unique().to_list()
        hashes = {*judging, *subgraphs["request_hashes"].explode().drop_nulls()}
        replies = [reply for reply in map(self.ledger.find, sorted(hashes)) if reply is not None]
        # A sum over a column with empty cells would count an unknown price as none.
        unknown = judgments["cost_usd"].null_count() > 0 or any(reply.cost_usd is None for reply in replies)
        return {
            "calls": len(judging) + retrieved.calls,
            "tokens_in": int(judgments["tokens_in"].sum()) + retrieved.tokens_in,
            "tokens_out": int(judgments["tokens_out"].sum()) + retrieved.tokens_out,
            "cost_usd": None if unknown else float(judgments["cost_usd"].sum()) + retrieved.cost_usd,
            "latency_s": sum(reply.latency_s for reply in replies) / len(replies) if replies else None,
        }


def metrics_table(report: pl.DataFrame, names: Sequence[str] = CELL_METRICS) -> pl.DataFrame:
    """Lay a report out for reading: a row for each cell, a column for each metric.

    Args:
        report: rows of ``ablation_report``.
        names: the metrics, in order.
    """
    values = [{metric["metric"]: metric["value"] for metric in metrics} for metrics in report["metrics"].to_list()]
    columns = [pl.Series(name, [row.get(name) for row in values], dtype=pl.Float64) for name in names]
    return report.select("study", "cell", "pairs_with_facts", "calls", "tokens_in", "cost_usd").with_columns(columns)
