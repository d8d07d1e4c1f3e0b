"""The version of the retrieval code: what changes the meaning of its rows, of all methods together."""

from __future__ import annotations

from kgrag_assets.retrieval import adaptive, entity_paths, fusion, queries, question_links, seeds, vector_triples
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import Settings

VERSION = "retrieval-2"


def retrieval_version(settings: Settings) -> str:
    """Name what decides retrieval besides graph and task: code, settings and, where one is set, the language model.

    Needs no key and no server. Each row's own key says more exactly what it depends on; this says when to look.
    """
    code = (
        vector_triples.VERSION,
        entity_paths.VERSION,
        seeds.VERSION,
        question_links.VERSION,
        queries.VERSION,
        adaptive.VERSION,
        fusion.VERSION,
    )
    parts = [f"{VERSION}-{key_of(*code)[:8]}", settings.retrieval.model_dump_json(), str(settings.graph.graphs)]
    if settings.embedder.first_stage != "none":
        parts.append(f"{settings.embedder.first_stage}/{settings.embedder.rescored}")
    llm = settings.retrieval_llm
    if llm.provider != "none":
        parts.append(f"{llm.provider}:{llm.model}/{llm.temperature}/{llm.max_tokens}/{llm.structured == 'none'}")
        if "search_code" in settings.retrieval.methods:
            # Only where it is in use: it brings an interpreter.
            from kgrag_assets.retrieval import search_code

            parts.append(search_code.VERSION)
    return "/".join(parts)
