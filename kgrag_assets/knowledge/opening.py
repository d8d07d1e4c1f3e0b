"""From a graph's folder to its source: which files hold its data, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.sources import blocks, kgtk, ntriples, triples_table, umls, wikidata5m
from kgrag_assets.knowledge.sources.blocks import BlockReader, BlockSource
from kgrag_assets.knowledge.sources.lines import files_with_suffix
from kgrag_assets.knowledge.sources.protocol import Source, Unit
from kgrag_assets.knowledge.sources.sparql_extract import sparql_source
from kgrag_assets.knowledge.sources.wikidata_json import WikidataJsonReader
from kgrag_assets.knowledge.sparql.endpoint import Endpoint

_JSON = (".json", ".jsonl", ".ndjson")


def _json_files(folder: Path) -> list[Path]:
    return files_with_suffix(folder, _JSON)


# For each format of lines: its files in a folder, and the reader of one of them.
_LINE_FORMATS: dict[str, tuple[Callable[[Path], list[Path]], Callable[[Path], BlockReader]]] = {
    "kgtk": (kgtk.files_of, lambda _path: kgtk.KgtkReader()),
    "ntriples": (ntriples.files_of, lambda _path: ntriples.NTriplesReader()),
    "umls": (umls.files_of, umls.reader_of),
    "wikidata5m": (wikidata5m.files_of, wikidata5m.reader_of),
    "wikidata_json": (_json_files, lambda _path: WikidataJsonReader()),
}


@dataclass(frozen=True)
class _NoFiles:
    """A graph whose folder holds no file of its format."""

    folder: GraphFolder
    size: int = 0

    def units(self) -> Iterator[Unit | Collector]:
        """Say what is missing."""
        nothing = Collector(file=str(self.folder.data_path))
        nothing.reject(None, f"no file of the format {self.folder.format} lies here", "")
        yield nothing


def data_files(folder: GraphFolder) -> list[Path]:
    """List the files that hold a graph's data, sorted; none for a graph that is asked for over the network."""
    if folder.format == "sparql":
        return []
    if folder.data_path.is_file():
        return [folder.data_path]
    if folder.format == "triples":
        return triples_table.files_of(folder.data_path)
    files_of, _reader = _LINE_FORMATS[folder.format]
    return files_of(folder.data_path)


def open_source(folder: GraphFolder, kept: Path) -> Source:
    """Return what reads a graph.

    Args:
        folder: the graph.
        kept: folder in which the pages of an endpoint's answer are kept until all of them are there.
    """
    if folder.format == "sparql":
        options = folder.sparql
        endpoint = Endpoint(options["endpoint"], options["contact"])
        return sparql_source(endpoint, folder.path / options["query"], int(options["page_size"]), folder.read, kept)
    files = data_files(folder)
    if not files:
        return _NoFiles(folder)
    root = folder.data_path if folder.data_path.is_dir() else folder.data_path.parent
    if folder.format == "triples":
        return triples_table.TableSource(files, root, folder.read, blocks.BLOCK_BYTES)
    _files, reader_of = _LINE_FORMATS[folder.format]
    return BlockSource(files, root, reader_of, folder.read, blocks.BLOCK_BYTES)
