"""From candidate pairs to the rows of ``retrieved_subgraphs``: what stands is kept, the rest is retrieved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgrag_assets.lake.lake import Difference, difference
from kgrag_assets.retrieval.fusion import fuse, fused_key
from kgrag_assets.retrieval.protocol import RetrievalError, RetrievalQuery, Retriever, Subgraph
from kgrag_assets.retrieval.subgraph_rows import subgraph_of, subgraph_row
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.settings import RetrievalSettings

# Pairs retrieved at once: whoever watches hears of progress this often.
BATCH = 500

StartProgress = Callable[[int], Callable[[int], None]]


@dataclass(frozen=True)
class RetrievedRows:
    """All subgraphs of a task, and how many were kept, made now (fused ones included), and dropped."""

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
    settings: RetrievalSettings | None = None,
) -> RetrievedRows:
    """Retrieve the subgraph of each candidate pair by each method, where it does not stand already.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        candidates: rows of ``candidate_pairs``.
        retrievers: the methods.
        existing: rows of ``retrieved_subgraphs`` as they are.
        start_progress: called with the number of subgraphs to retrieve; its result with those done since.
        settings: with ``fusion`` rrf, each pair has a row of the method ``fusion`` besides, of at most ``max_facts``
            facts; None for none.

    Raises:
        RetrievalError: a candidate names an attribute that is not there.
        ModelUnavailableError: a method's language model or the embedder cannot be used.
    """
    queries = queries_of(attributes, candidates)
    pairs = {row["pair_id"]: row for row in candidates.select(PAIR_NAMES).iter_rows(named=True)}
    keys = {query.pair_id: [retriever.key(query) for retriever in retrievers] for query in queries}
    todo = _difference((key for mine in keys.values() for key in mine), existing)
    missing = set(todo.missing[ROW_KEY])
    most = settings.max_facts if settings is not None and settings.fusion == "rrf" and retrievers else None
    unfused = 0
    if most is not None:
        planned = (fused_key(pair_id, mine, most) for pair_id, mine in keys.items())
        unfused = _difference(planned, existing).missing.height
    tell = start_progress(len(missing) + unfused) if start_progress is not None else None
    rows: list[dict[str, object]] = []
    # By pairs, then methods: what a question about a pair is embedded for once serves all of them.
    for start in range(0, len(queries), BATCH):
        for place, retriever in enumerate(retrievers):
            batch = [query for query in queries[start : start + BATCH] if keys[query.pair_id][place] in missing]
            if not batch:
                continue
            for query, found in zip(batch, retriever.retrieve(batch), strict=True):
                rows.append(subgraph_row(pairs[query.pair_id], found, _kept_under(found, keys[query.pair_id][place])))
            if tell is not None:
                tell(len(batch))
    frame = pl.concat([todo.kept, RETRIEVED_SUBGRAPHS.frame(rows)])
    kept, computed = todo.kept.height, len(rows)
    if most is not None:
        fused = _fused(frame, pairs, existing, most)
        frame = pl.concat([frame, fused.frame])
        kept, computed = kept + fused.kept, computed + fused.computed
        if tell is not None:
            tell(unfused)
    return RetrievedRows(frame=frame, kept=kept, computed=computed, removed=existing.height - kept)


def _kept_under(subgraph: Subgraph, key: str) -> str:
    """Return the key of a row; without an answer it is none that is looked for, so that the model is asked again.

    An answer that could not be used is in the ledger and costs nothing the second time; one that never came may come.
    """
    return key_of("without an answer", key) if subgraph.status == "no_answer" else key


def _difference(keys: Iterable[str], existing: pl.DataFrame) -> Difference:
    return difference(pl.DataFrame({ROW_KEY: list(keys)}, schema={ROW_KEY: pl.String}), existing)


def _fused(
    frame: pl.DataFrame, pairs: Mapping[str, Mapping[str, object]], existing: pl.DataFrame, max_facts: int
) -> RetrievedRows:
    """Fuse the methods' rows of each pair, where the fused row does not stand already."""
    by_pair = frame.group_by("pair_id").agg(ROW_KEY).iter_rows()
    keys = {fused_key(pair_id, mine, max_facts): pair_id for pair_id, mine in by_pair}
    todo = _difference(keys, existing)
    wanted = {keys[key]: key for key in todo.missing[ROW_KEY]}
    parts: dict[str, list[Subgraph]] = {pair_id: [] for pair_id in wanted}
    for row in frame.filter(pl.col("pair_id").is_in(sorted(wanted))).iter_rows(named=True):
        parts[row["pair_id"]].append(subgraph_of(row))
    rows = [subgraph_row(pairs[pair_id], fuse(found, max_facts), wanted[pair_id]) for pair_id, found in parts.items()]
    fused = pl.concat([todo.kept, RETRIEVED_SUBGRAPHS.frame(rows)])
    return RetrievedRows(frame=fused, kept=todo.kept.height, computed=len(rows), removed=todo.removed)


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
