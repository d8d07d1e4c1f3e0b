"""From candidate pairs to the rows of ``retrieved_subgraphs``: what stands is kept, the rest is retrieved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from kgrag_assets.lake.lake import difference
from kgrag_assets.retrieval.protocol import RetrievalError, RetrievalQuery, Retriever, Subgraph
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.schemas.attribute import Attribute, attributes_of

# Pairs retrieved at once: whoever watches hears of progress this often.
BATCH = 500

StartProgress = Callable[[int], Callable[[int], None]]


@dataclass(frozen=True)
class RetrievedRows:
    """All subgraphs of a task, and how many were kept, retrieved now, and dropped."""

    frame: pl.DataFrame
    kept: int
    computed: int
    removed: int


def retrieve_task(
    attributes: pl.DataFrame,
    candidates: pl.DataFrame,
    retrievers: Sequence[Retriever],
    existing: pl.DataFrame,
    start_progress: StartProgress | None = None,
) -> RetrievedRows:
    """Retrieve the subgraph of each candidate pair by each method, where it does not stand already.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        candidates: rows of ``candidate_pairs``.
        retrievers: the methods.
        existing: rows of ``retrieved_subgraphs`` as they are.
        start_progress: called with the number of subgraphs to retrieve; its result with those done since.

    Raises:
        RetrievalError: a candidate names an attribute that is not there.
    """
    queries = queries_of(attributes, candidates)
    pairs = {row["pair_id"]: row for row in candidates.select(PAIR_NAMES).iter_rows(named=True)}
    work: dict[str, tuple[Retriever, RetrievalQuery]] = {}
    for retriever in retrievers:
        work.update({retriever.key(query): (retriever, query) for query in queries})
    wanted = pl.DataFrame({ROW_KEY: list(work)}, schema={ROW_KEY: pl.String})
    todo = difference(wanted, existing)
    missing = [(key, *work[key]) for key in todo.missing[ROW_KEY]]
    tell = start_progress(len(missing)) if start_progress is not None else None
    rows: list[dict[str, object]] = []
    for retriever in retrievers:
        mine = [(key, query) for key, owner, query in missing if owner is retriever]
        for start in range(0, len(mine), BATCH):
            batch = mine[start : start + BATCH]
            found = retriever.retrieve([query for _, query in batch])
            rows.extend(
                _row(pairs[query.pair_id], subgraph, key) for (key, query), subgraph in zip(batch, found, strict=True)
            )
            if tell is not None:
                tell(len(batch))
    frame = pl.concat([todo.kept, RETRIEVED_SUBGRAPHS.frame(rows)])
    return RetrievedRows(frame=frame, kept=todo.kept.height, computed=len(rows), removed=todo.removed)


def queries_of(attributes: pl.DataFrame, candidates: pl.DataFrame) -> list[RetrievalQuery]:
    """Put each candidate pair together with its two attributes.

    Raises:
        RetrievalError: a candidate names an attribute that is not there.
    """
    by_id = attributes_of(attributes)
    columns = ("pair_id", "source_attribute_id", "target_attribute_id")
    return [
        RetrievalQuery(pair_id, _attribute(by_id, source), _attribute(by_id, target))
        for pair_id, source, target in candidates.select(columns).iter_rows()
    ]


def _attribute(by_id: Mapping[str, Attribute], attribute_id: str) -> Attribute:
    try:
        return by_id[attribute_id]
    except KeyError:
        raise RetrievalError(
            f"a candidate pair names the attribute {attribute_id}, which schema_attributes does not have: "
            "bring candidate_pairs up to date"
        ) from None


def _row(pair: Mapping[str, object], subgraph: Subgraph, key: str) -> dict[str, object]:
    return {
        **pair,
        "method": subgraph.method,
        "status": subgraph.status,
        "seeds": [asdict(seed) for seed in subgraph.seeds],
        "facts": [asdict(fact) for fact in subgraph.facts],
        "facts_cut": subgraph.facts_cut,
        "unverified": list(subgraph.unverified),
        "notes": subgraph.notes,
        "request_hashes": list(subgraph.request_hashes),
        ROW_KEY: key,
    }
