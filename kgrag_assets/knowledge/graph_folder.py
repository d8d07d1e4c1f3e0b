"""The folders that people put knowledge graphs into, and what ``kg.yaml`` says about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.lake.paths import LakePaths, name_problem

FORMATS = ("kgtk", "wikidata_json")
_KEYS = {"format", "path", "languages", "namespace", "title", "licence", "literals"}


@dataclass(frozen=True)
class GraphFolder:
    """One knowledge graph: where its data lies and how to read it."""

    name: str
    path: Path
    format: str
    data_path: Path
    languages: tuple[str, ...]
    namespace: str
    title: str
    literals: bool


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
    unknown = sorted(str(key) for key in values if key not in _KEYS)
    if unknown:
        raise KnowledgeError(f"{config}: unknown setting {unknown[0]!r}; use {', '.join(sorted(_KEYS))}")
    kind = values.get("format")
    if kind not in FORMATS:
        raise KnowledgeError(f"{config}: format must be one of {', '.join(FORMATS)}, not {kind!r}")
    data = folder / str(values.get("path", "."))
    if not _exists(data):
        raise KnowledgeError(f"{config}: path {str(values.get('path'))!r} does not exist (looked for {data})")
    languages = values.get("languages", ["en"])
    if not isinstance(languages, list) or not languages or not all(isinstance(code, str) for code in languages):
        raise KnowledgeError(f"{config}: languages must be a list such as [en, de]; put codes such as 'no' in quotes")
    namespace = str(values.get("namespace", "wd"))
    if not (namespace.isascii() and namespace.isalnum()):
        raise KnowledgeError(f"{config}: namespace must be letters and digits, not {namespace!r}")
    literals = values.get("literals", False)
    if not isinstance(literals, bool):
        raise KnowledgeError(f"{config}: literals must be true or false, not {literals!r}")
    return GraphFolder(
        name=name,
        path=folder,
        format=str(kind),
        data_path=data,
        languages=tuple(languages),
        namespace=namespace,
        title=str(values.get("title", name)),
        literals=literals,
    )


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
