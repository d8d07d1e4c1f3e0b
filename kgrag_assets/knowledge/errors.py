"""The error of this room."""

from __future__ import annotations


class KnowledgeError(ValueError):
    """A knowledge graph cannot be read or opened; the message names the file and what to do."""
