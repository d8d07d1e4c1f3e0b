"""Searching walks in the lake's own adjacency, for the retrieval methods that ask for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.search import Path, SearchResult, neighbourhood, paths_among, paths_between
from kgrag_assets.retrieval.walks import Step, Walk, Walks
from kgrag_assets.settings import RetrievalSettings

# Two hubs can share a million neighbours: so many paths are told apart, and what is beyond is said to be left out.
MAX_PATHS = 10_000


class LocalSearch:
    """The adjacency, searched as the settings say."""

    def __init__(
        self, adjacency: Adjacency, settings: RetrievalSettings, graphs: Collection[str] | None = None
    ) -> None:
        """Take what is searched.

        Args:
            adjacency: an opened adjacency.
            settings: ``max_hops``, ``hub_cap`` and ``max_facts`` are used.
            graphs: walk only edges that one of these knowledge graphs states; None for all.
        """
        self._adjacency = adjacency
        self._settings = settings
        self._graphs = graphs

    def between(self, source: str, target: str, max_hops: int | None = None) -> Walks:
        """Return all simple paths of at most ``max_hops`` from one entity to another.

        Args:
            source: entity id.
            target: entity id.
            max_hops: longest path; None for the settings' ``max_hops``.

        Raises:
            KnowledgeError: the adjacency does not have one of the graphs.
        """
        options = self._settings
        return _walks(
            paths_between(
                self._adjacency,
                source,
                target,
                max_hops=options.max_hops if max_hops is None else max_hops,
                hub_cap=options.hub_cap,
                graphs=self._graphs,
                max_paths=MAX_PATHS,
            )
        )

    def among(self, seeds: Sequence[str]) -> Walks:
        """Return all simple paths of at most ``max_hops`` between every two of the entities, each path once.

        Raises:
            KnowledgeError: the adjacency does not have one of the graphs.
            ValueError: there are more than 63 entities.
        """
        options = self._settings
        return _walks(
            paths_among(
                self._adjacency,
                seeds,
                max_hops=options.max_hops,
                hub_cap=options.hub_cap,
                max_paths=MAX_PATHS,
                graphs=self._graphs,
            )
        )

    def around(self, seed: str, depth: int = 1) -> Walks:
        """Return at most ``max_facts`` walks of at most ``depth`` statements from an entity, the nearest first.

        Raises:
            KnowledgeError: the adjacency does not have one of the graphs.
        """
        options = self._settings
        return _walks(
            neighbourhood(
                self._adjacency,
                seed,
                max_edges=options.max_facts,
                hub_cap=options.hub_cap,
                depth=depth,
                graphs=self._graphs,
            )
        )


def _walks(found: SearchResult) -> Walks:
    return Walks(tuple(_walk(path) for path in found.paths), found.cut, found.exhausted)


def _walk(path: Path) -> Walk:
    return Walk(path.nodes, tuple(Step(edge.head, edge.relation, edge.tail) for edge in path.edges))
