"""The questions of ``knowledge.search``, answered by an endpoint: neighbourhood, and all short paths between two."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kgrag_assets.knowledge.search import Edge, Path, SearchResult
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.edges import EdgeQueries, Hop
from kgrag_assets.knowledge.sparql.errors import SparqlTimeoutError
from kgrag_assets.knowledge.sparql.names import labels_of
from kgrag_assets.knowledge.sparql.paging import PAGE_SIZE
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary
from kgrag_assets.knowledge.sparql.walks import Meeting, Surroundings

# A search in the background of a run may take its time; the endpoint's own limit for one query is of this size.
TIME_BUDGET_S = 60.0


class RemoteSearch:
    """Searches the graph behind one endpoint; answers have the lake's ids, as the local search gives them.

    The paths are those of the local search on the same graph. Three things differ: ``cut`` counts at hubs what
    was seen to be left out, which is less than what there is; of the statements that reach a hub the endpoint
    chooses which ``hub_cap`` are seen; and time is a budget too. When it is up, in the search or at the endpoint,
    the result is what was found by then, with ``exhausted``.
    """

    def __init__(
        self,
        client: SparqlClient,
        vocabulary: Vocabulary | None = None,
        time_budget_s: float = TIME_BUDGET_S,
        page_size: int = PAGE_SIZE,
    ) -> None:
        """Take the endpoint and the bounds.

        Args:
            client: who is asked.
            vocabulary: how the graph writes its ids; None for Wikidata's.
            time_budget_s: seconds that one question may take, waiting included.
            page_size: rows a page.
        """
        self._client = client
        self._words = vocabulary or Vocabulary()
        self._edges = EdgeQueries(client, self._words, page_size)
        self._time_budget_s = time_budget_s

    def neighbourhood(
        self, seed: str, max_edges: int = 20, hub_cap: int = 200, depth: int = 1, budget: int = 100_000
    ) -> SearchResult:
        """Return the statements around a seed, breadth first: see ``knowledge.search.neighbourhood``.

        Raises:
            ValueError: ``depth`` is below 1.
            SparqlError: the endpoint gives no whole answer.
        """
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        if self._words.local_of(seed) is None:
            return SearchResult((), 0, exhausted=False)
        until = self._client.deadline(self._time_budget_s)
        walk = Surroundings(self._edges, seed, max_edges, hub_cap, budget, until)
        try:
            walk.go(depth)
        except SparqlTimeoutError:
            walk.exhausted = True
        return self._result(walk.found, walk.cut, until, exhausted=walk.exhausted)

    def paths_between(
        self,
        source: str,
        target: str,
        max_hops: int = 3,
        hub_cap: int = 200,
        budget: int = 100_000,
        max_paths: int | None = None,
    ) -> SearchResult:
        """Return all simple paths of at most ``max_hops`` between two entities, ignoring direction while walking.

        The same paths in the same order as ``knowledge.search.paths_between``. Both ends' statements are fetched,
        then the statements between the two sets of neighbours; a hub is never expanded.

        Args:
            source: entity id.
            target: entity id.
            max_hops: longest path, 1 to 3.
            hub_cap: edges of a node beyond which it counts as a hub.
            budget: edges fetched, after which the search ends with what it found.
            max_paths: at most so many are returned, the shortest; None for all.

        Raises:
            ValueError: ``max_hops`` is not 1, 2 or 3.
            SparqlError: the endpoint gives no whole answer.
        """
        if max_hops not in (1, 2, 3):
            raise ValueError(f"max_hops must be 1, 2 or 3, not {max_hops}")
        known = self._words.local_of(source) is not None and self._words.local_of(target) is not None
        if not known or source == target:
            return SearchResult((), 0, exhausted=False)
        until = self._client.deadline(self._time_budget_s)
        meeting = Meeting(self._edges, source, target, max_hops, hub_cap, budget, until)
        try:
            meeting.walk()
        except SparqlTimeoutError:
            meeting.exhausted = True
        ordered = sorted(meeting.found, key=lambda hops: (len(hops), hops))
        limited = ordered if max_paths is None else ordered[: max(0, max_paths)]
        exhausted = meeting.exhausted or len(limited) < len(ordered)
        return self._result(limited, meeting.cut, until, exhausted=exhausted)

    def _result(self, walks: Sequence[tuple[Hop, ...]], cut: int, until: float, *, exhausted: bool) -> SearchResult:
        paths = tuple(_path(hops) for hops in walks)
        ids = {node for path in paths for node in path.nodes} | {edge.relation for path in paths for edge in path.edges}
        # Where nobody can say any more what an id is called, it stands for itself.
        labels = {one: one.partition(":")[2] for one in ids}
        if ids:
            with suppress(SparqlTimeoutError):
                labels.update(labels_of(self._client, self._words, ids, until))
        return SearchResult(paths, cut, exhausted, labels)


def _path(hops: Sequence[Hop]) -> Path:
    edges = tuple(
        Edge(here, relation, there) if forward else Edge(there, relation, here)
        for here, relation, there, forward in hops
    )
    return Path((hops[0][0], *(hop[2] for hop in hops)), edges)
