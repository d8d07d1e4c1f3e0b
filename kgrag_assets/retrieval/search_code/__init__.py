"""This package holds retrieval by search code: programs by a language model, asked for, run and turned into facts."""

from __future__ import annotations

from kgrag_assets.retrieval.search_code.search import VERSION, SearchCode

__all__ = ["VERSION", "SearchCode"]
