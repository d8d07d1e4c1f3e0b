"""Searching walks in the lake's own adjacency, for the retrieval methods that ask for them."""

from __future__ import annotations

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.search import Path, SearchResult, neighbourhood, paths_between
from kgrag_assets.retrieval.walks import Step, Walk, Walks
from kgrag_assets.settings import RetrievalSettings


class LocalSearch:
    """The adjacency, searched as the settings say."""

    def __init__(self, adjacency: Adjacency, settings: RetrievalSettings) -> None:
        """Take an opened adjacency; ``max_hops``, ``hub_cap`` and ``max_facts`` of the settings are used."""
        self._adjacency = adjacency
        self._settings = settings

    def between(self, source: str, target: str) -> Walks:
        """Return all simple paths of at most ``max_hops`` from one entity to another."""
        options = self._settings
        return _walks(
            paths_between(self._adjacency, source, target, max_hops=options.max_hops, hub_cap=options.hub_cap)
        )

    def around(self, seed: str) -> Walks:
        """Return at most ``max_facts`` statements around an entity, as walks of one step."""
        options = self._settings
        return _walks(neighbourhood(self._adjacency, seed, max_edges=options.max_facts, hub_cap=options.hub_cap))


def _walks(found: SearchResult) -> Walks:
    return Walks(tuple(_walk(path) for path in found.paths), found.cut, found.exhausted)


def _walk(path: Path) -> Walk:
    return Walk(path.nodes, tuple(Step(edge.head, edge.relation, edge.tail) for edge in path.edges))
