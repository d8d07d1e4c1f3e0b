"""The folders that people put knowledge graphs into, and what ``kg.yaml`` says about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.filters import GraphFilter, read_filter
from kgrag_assets.knowledge.refresh_options import RefreshOptions, read_refresh
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.iris import iri_ids
from kgrag_assets.lake.paths import LakePaths, name_problem

LITERAL_KINDS = (
    "string",
    "external-id",
    "url",
    "monolingualtext",
    "time",
    "quantity",
    "globe-coordinate",
    "commons-media",
    "math",
    "musical-notation",
    "tabular-data",
    "geo-shape",
)
# What each format may have besides the settings of all formats.
FORMAT_OPTIONS: dict[str, tuple[str, ...]] = {
    "kgtk": (),
    "wikidata_json": ("ranks", "lexemes", "refresh"),
    "ntriples": ("iri_prefixes", "lexemes"),
    "wikidata5m": (),
    "triples": (),
    "umls": ("sources", "suppress"),
    "sparql": ("endpoint", "query", "page_size", "contact", "iri_prefixes"),
}
FORMATS = tuple(FORMAT_OPTIONS)
_KEYS = {"format", "path", "languages", "namespace", "title", "licence", "literals", "filter"}
_LANGUAGE = re.compile(r"[A-Za-z0-9-]{1,35}\Z")
# Wikidata keeps a name that is the same in many languages once, as "mul".
ANY_LANGUAGE = "mul"


@dataclass(frozen=True)
class GraphFolder:
    """One knowledge graph: where its data lies, how to read it, and which part of it is kept."""

    name: str
    path: Path
    format: str
    data_path: Path
    namespace: str
    title: str
    read: ReadOptions
    filter: GraphFilter = field(default_factory=GraphFilter)
    refresh: RefreshOptions | None = None
    sparql: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_wikidata_ids(self) -> bool:
        """Whether ``P`` and digits name a relation."""
        return self.format in ("kgtk", "wikidata_json", "ntriples", "wikidata5m", "sparql")


@dataclass(frozen=True)
class ListedGraph:
    """A folder below ``input/knowledge_graphs``, and why it cannot be used where it cannot."""

    name: str
    problem: str | None


def list_graphs(paths: LakePaths) -> list[ListedGraph]:
    """List the folders of knowledge graphs, sorted by name, the unusable ones with the reason."""
    root = paths.knowledge_graphs
    if not root.is_dir():
        return []
    listed = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        try:
            load_graph_folder(paths, folder.name)
        except KnowledgeError as error:
            listed.append(ListedGraph(folder.name, str(error)))
        else:
            listed.append(ListedGraph(folder.name, None))
    return listed


def load_graph_folder(paths: LakePaths, name: str) -> GraphFolder:
    """Read what ``kg.yaml`` says about one graph.

    Raises:
        KnowledgeError: the name is no graph's, ``kg.yaml`` is missing or says something unknown, or the data
            it names does not exist.
    """
    problem = name_problem(name)
    if problem is not None:
        raise KnowledgeError(f"knowledge graph {name!r}: {problem}")
    folder = paths.knowledge_graphs / name
    config = folder / "kg.yaml"
    values = _read(config)
    kind = values.get("format")
    if kind not in FORMATS:
        raise KnowledgeError(f"{config}: format must be one of {', '.join(FORMATS)}, not {kind!r}")
    known = _KEYS | set(FORMAT_OPTIONS[kind])
    unknown = sorted(str(key) for key in values if key not in known)
    if unknown:
        raise KnowledgeError(
            f"{config}: unknown setting {unknown[0]!r} for the format {kind}; use {', '.join(sorted(known))}"
        )
    data = folder / str(values.get("path", "."))
    if not _exists(data):
        raise KnowledgeError(f"{config}: path {str(values.get('path'))!r} does not exist (looked for {data})")
    namespace = str(values.get("namespace", "umls" if kind == "umls" else "wd"))
    if not (namespace.isascii() and namespace.isalnum()):
        raise KnowledgeError(f"{config}: namespace must be letters and digits, not {namespace!r}")
    kept = read_filter(values.get("filter"), str(config))
    if kept.min_sitelinks and kind not in ("wikidata_json", "ntriples"):
        raise KnowledgeError(f"{config}: filter.min_sitelinks is known of Wikidata's dumps only; use min_statements")
    return GraphFolder(
        name=name,
        path=folder,
        format=kind,
        data_path=data,
        namespace=namespace,
        title=str(values.get("title", name)),
        read=_read_options(values, kept, config),
        filter=kept,
        refresh=read_refresh(values.get("refresh"), str(config)),
        sparql=_sparql(values, folder, config) if kind == "sparql" else {},
    )


def _read_options(values: Mapping[str, Any], kept: GraphFilter, config: Path) -> ReadOptions:
    languages = _texts(values, "languages", ["en"], config, "such as [en, de]; put codes such as 'no' in quotes")
    if not languages:
        raise KnowledgeError(f"{config}: languages must name at least one, such as [en]")
    strange = next((code for code in languages if not _LANGUAGE.match(code)), None)
    if strange is not None:
        raise KnowledgeError(f"{config}: languages must hold codes such as en or pt-br, not {strange!r}")
    ranks = values.get("ranks", "not_deprecated")
    if ranks not in ("not_deprecated", "best"):
        raise KnowledgeError(f"{config}: ranks must be not_deprecated or best, not {ranks!r}")
    lexemes = values.get("lexemes", False)
    if not isinstance(lexemes, bool):
        raise KnowledgeError(f"{config}: lexemes must be true or false, not {lexemes!r}")
    prefixes = _texts(values, "iri_prefixes", [], config, "of texts")
    try:
        iri_ids(prefixes)
    except KnowledgeError as error:
        raise KnowledgeError(f"{config}: {error}") from error
    extra = [
        (name, _texts(values, name, [], config, "of texts"))
        for name in ("sources", "suppress", "iri_prefixes")
        if name in values
    ]
    return ReadOptions(
        languages=tuple(dict.fromkeys((*languages, ANY_LANGUAGE))),
        literals=_literals(values.get("literals", False), config),
        ranks=ranks,
        lexemes=lexemes,
        min_sitelinks=kept.min_sitelinks,
        min_statements=kept.min_statements,
        relations=kept.relations,
        without_relations=kept.without_relations,
        always_relations=kept.walked_relations,
        extra=tuple(extra),
    )


def _literals(value: object, config: Path) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("all",) if value else ()
    if isinstance(value, list) and all(kind in LITERAL_KINDS for kind in value):
        return tuple(value)
    raise KnowledgeError(f"{config}: literals must be true, false or a list of {', '.join(LITERAL_KINDS)}")


def _texts(values: Mapping[str, Any], name: str, default: list[str], config: Path, hint: str) -> tuple[str, ...]:
    found = values.get(name, default)
    if isinstance(found, Mapping):  # prefixes read best as a mapping
        found = [f"{long}={short}" for short, long in found.items()]
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise KnowledgeError(f"{config}: {name} must be a list {hint}")
    return tuple(found)


def _sparql(values: Mapping[str, Any], folder: Path, config: Path) -> dict[str, str]:
    endpoint, query = values.get("endpoint"), values.get("query")
    if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
        raise KnowledgeError(f"{config}: endpoint must be the address of a SPARQL endpoint, not {endpoint!r}")
    if not isinstance(query, str) or "/" in query or not _exists(folder / query):
        raise KnowledgeError(f"{config}: query must be a file in {folder} that holds a SELECT query, not {query!r}")
    contact = values.get("contact")
    if not isinstance(contact, str) or not contact.strip():
        raise KnowledgeError(f"{config}: contact must be an address that the endpoint's operators can write to")
    size = values.get("page_size", 10_000)
    if type(size) is not int or not 1 <= size <= 1_000_000:
        raise KnowledgeError(f"{config}: page_size must be a number of rows, not {size!r}")
    return {"endpoint": endpoint, "query": query, "contact": contact, "page_size": str(size)}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is too long
        return False


def _read(config: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise KnowledgeError(f"{config} is missing: it says format and path of the graph") from error
    except RecursionError as error:
        raise KnowledgeError(f"{config} cannot be read: it is nested too deeply") from error
    except (yaml.YAMLError, ValueError, OSError) as error:
        # ValueError: not UTF-8, or a date that is none.
        raise KnowledgeError(f"{config} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise KnowledgeError(f"{config} must hold settings, such as `format: kgtk`")
    return values
