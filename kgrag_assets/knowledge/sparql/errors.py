"""The errors of asking an endpoint; each message names the endpoint and what to do."""

from __future__ import annotations

from kgrag_assets.knowledge.errors import KnowledgeError


class SparqlError(KnowledgeError):
    """An endpoint did not answer, or with something that is no whole answer."""


class SparqlTimeoutError(SparqlError):
    """Time was up: the endpoint's own limit for one query, ours for one request, or that of the whole question."""


class QueryRefusedError(SparqlError):
    """A query cannot be taken as it is; nothing was sent."""
