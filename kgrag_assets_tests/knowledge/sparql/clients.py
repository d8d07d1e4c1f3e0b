"""What the tests of this folder share: a clock that only moves when somebody waits, and clients that use it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_build import build_adjacency, frames_as_buckets
from kgrag_assets.knowledge.http.throttle import Throttle
from kgrag_assets.knowledge.sparql.cache import AnswerCache
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.endpoint import Endpoint
from kgrag_assets.models.retrying import Pause
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, triple_id_of

CONTACT = "data-team@hospital.example"


class FakeTime(Pause):
    """A clock and a pause in one: waiting moves the clock and takes no time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.waits: list[float] = []
        self._guard = threading.Lock()

    def clock(self) -> float:
        with self._guard:
            return self.now

    def pass_by(self, seconds: float) -> None:
        with self._guard:
            self.now += seconds

    def wait(self, seconds: float) -> bool:
        with self._guard:
            self.waits.append(seconds)
            self.now += seconds
        return super().wait(0)


def local_graph(statements: Sequence[tuple[str, str, str]], folder: Path) -> Adjacency:
    """Write statements between ids as a graph in memory."""
    rows: list[dict[str, object]] = [
        {
            "triple_id": triple_id_of("test", head, relation, tail, None),
            "graph": "test",
            "bucket": 0,
            "head": head,
            "relation": relation,
            "tail": tail,
            "tail_value": None,
            "head_label": head,
            "relation_label": relation,
            "tail_label": tail,
            "row_key": key_of(head, relation, tail),
        }
        for head, relation, tail in dict.fromkeys(statements)
    ]
    build_adjacency(frames_as_buckets(KG_ENTITIES.empty(), KG_TRIPLES.frame(rows)), folder, "1")
    return Adjacency.open(folder)


def client_of(url: str, time: FakeTime | None = None, kept: Path | None = None, **settings: Any) -> SparqlClient:
    time = time or FakeTime()
    endpoint = Endpoint(url, CONTACT, **{"min_interval_s": 0.0, "timeout_s": 10.0, **settings})
    cache = AnswerCache(kept) if kept is not None else None
    return SparqlClient(endpoint, cache, pause=time, clock=time.clock, throttle=Throttle(time.clock))
