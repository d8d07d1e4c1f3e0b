"""Labels of entities and relations behind an endpoint."""

from __future__ import annotations

from collections.abc import Iterable

from kgrag_assets.knowledge.sparql.answers import Row, value
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.templates import Templates
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary

NAMED_AT_ONCE = 100


def labels_of(client: SparqlClient, vocabulary: Vocabulary, ids: Iterable[str], until: float) -> dict[str, str]:
    """Return the label of each id that has one, in the best of the vocabulary's languages.

    Args:
        client: who is asked.
        vocabulary: how the graph writes ids and names.
        ids: ids of this graph.
        until: deadline by the client's clock.

    Raises:
        SparqlTimeoutError: time is up.
        SparqlError: there is no whole answer.
    """
    templates = Templates(vocabulary)
    wanted = sorted(set(ids))
    best: dict[str, tuple[int, str]] = {}
    for start in range(0, len(wanted), NAMED_AT_ONCE):
        locals_ = [one.partition(":")[2] for one in wanted[start : start + NAMED_AT_ONCE]]
        nodes = [node for local in locals_ for node in vocabulary.named(local)]
        for row in client.select(templates.names(nodes), until).rows:
            entity_id = vocabulary.named_id(value(row, "e"))
            if entity_id is not None:
                found = (rank_of(row, "label", vocabulary), value(row, "label"))
                best[entity_id] = min(best.get(entity_id, found), found)
    return {one: text for one, (_rank, text) in best.items()}


def rank_of(row: Row, name: str, vocabulary: Vocabulary) -> int:
    """Return the place of a text's language among the vocabulary's; behind them all where it is none of these."""
    rank = vocabulary.language_rank(row[name].language if name in row else None)
    return rank if rank is not None else len(vocabulary.languages)
