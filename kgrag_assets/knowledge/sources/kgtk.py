"""Reading KGTK's tab-separated edge files: labels, aliases, descriptions and statements.

The format: https://kgtk.readthedocs.io/en/latest/specification (a header with ``node1``, ``label``, ``node2``;
strings as ``'text'@en``; the first character of a value tells its type).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.kgtk_values import KINDS, STRING, quantity, unescaped
from kgrag_assets.knowledge.sources.lines import files_with_suffix, is_id, lines_of, wants_literal
from kgrag_assets.knowledge.sources.wikidata_values import LITERAL_KINDS, ValueProblemError, one_line

_COLUMNS = ("node1", "label", "node2")
# Other names that the format allows for its columns.
_OTHER_NAMES = {
    "node1": ("from", "subject"),
    "label": ("predicate", "relation", "relationship"),
    "node2": ("to", "object"),
}
# Wikidata's datatype of a value, which tells an external id from other strings; and the rank of a statement.
_DATATYPE, _RANK = "node2;wikidatatype", "rank"

_NAMES = ("label", "alias", "description")
# What KGTK's tools write about nodes themselves; none of it is a statement of the graph.
_METADATA = frozenset(
    (
        *("datatype", "data_type", "wikipedia_sitelink", "addl_wikipedia_sitelink"),
        *("sitelink-badge", "sitelink-language", "sitelink-site", "sitelink-title"),
        *("vertex_in_degree", "vertex_out_degree", "vertex_pagerank", "vertex_hubs", "vertex_auth"),
        "text_embedding",
    )
)
# The kinds of node that its import of Wikidata tells apart; another object of `type` may be a graph's own.
_TYPE, _NODE_TYPES = "type", frozenset(("item", "property", "lexeme", "form", "sense"))
# KGTK writes a statement without a known or an existing value so; it says nothing about an object.
_NO_VALUE = frozenset(("novalue", "somevalue"))
_BOOLEANS = frozenset(("True", "False"))

# A statement about a statement (a qualifier): its node1 is the id of an edge, as KGTK makes them.
_EDGE_ID = re.compile(r"[QPL][0-9]+-P[0-9]+-")
_SYMBOL_NOT = frozenset("0123456789+-.\"^@'!")
_LANGUAGE_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'@([a-zA-Z0-9-]+)\Z", re.DOTALL)
_LIST = re.compile(r"(?<!\\)\|")


def files_of(folder: Path) -> list[Path]:
    """List the KGTK files of a folder: ``.tsv`` and ``.kgtk``, plain, gzip or bzip2."""
    return files_with_suffix(folder, (".tsv", ".kgtk"))


@dataclass(frozen=True)
class KgtkReader:
    """Reads KGTK edges; which file holds labels and which statements is told by each line's ``label``.

    Columns may stand in any order. Where the file has KGTK's ``rank`` column, deprecated statements are left
    aside (unless all ranks are wanted), and ``node2;wikidatatype`` tells kinds of strings apart.
    """

    @property
    def version(self) -> str:
        """Name of this way to read."""
        return "kgtk/1"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:  # noqa: ARG002  (the port's form)
        """Return the header line."""
        for row, raw in enumerate(start.split(b"\n"), start=1):
            if not raw.strip() or raw.startswith(b"#"):
                continue
            try:
                header = raw.decode("utf-8").rstrip("\r")
            except UnicodeDecodeError:
                into.reject(row, "the header is not UTF-8", raw.decode("latin-1"))
                return None
            places = _places(header.split("\t"))
            missing = [name for name in _COLUMNS if name not in places]
            if missing:
                into.reject(row, f"the header lacks {', '.join(missing)}: it must name them", header)
                return None
            return header.encode()
        into.reject(None, "the file is empty", "")
        return None

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:
        """Read edges."""
        header = context.decode("utf-8").split("\t")
        places = _places(header)
        at1, at_label, at2 = (places[name] for name in _COLUMNS)
        at_rank, at_type = places.get(_RANK), places.get(_DATATYPE)
        width, wait_for_header = len(header), first
        take = _Edges(options, into).take
        skip_deprecated = at_rank is not None and options.ranks != "all"
        for row, line in enumerate(lines_of(block, into), start=1):
            # The format has comments and blank lines.
            if not line or line[0] == "#" or line.isspace():
                continue
            if wait_for_header:
                wait_for_header = False
                continue
            cells = line.split("\t")
            if len(cells) != width:
                into.reject(row, f"{len(cells)} columns where the header has {width}", line)
                continue
            if skip_deprecated and at_rank is not None and cells[at_rank] == "deprecated":
                continue
            reason = take(cells[at1], cells[at_label], cells[at2], None if at_type is None else cells[at_type])
            if reason is not None:
                into.reject(row, reason, line)


def _places(header: list[str]) -> dict[str, int]:
    """Return the place of each known column that the header names."""
    found = {}
    for name in (*_COLUMNS, _RANK, _DATATYPE):
        for spelled in (name, *_OTHER_NAMES.get(name, ())):
            if spelled in header:
                found[name] = header.index(spelled)
                break
    return found


class _Edges:
    """Takes the edges of one block; remembers what was tested and noted already."""

    def __init__(self, options: ReadOptions, into: Collector) -> None:
        self.options, self.into = options, into
        self.ranks = {language: rank for rank, language in enumerate(options.languages)}
        self.listed: set[str] = set()
        self.relations: dict[str, bool] = {}
        self.noted: set[str] = set()
        self.node1, self.node1_is_id = "", False

    def take(self, node1: str, label: str, node2: str, datatype: str | None) -> str | None:
        """Take one edge, or say why not."""
        if node1 != self.node1:  # the edges of a node mostly follow one another
            self.node1, self.node1_is_id = node1, _is_symbol(node1)
        if not self.node1_is_id:
            return f"node1 is not an id: {node1[:60]!r}"
        if "-" in node1 and _EDGE_ID.match(node1):
            return None
        if label in _NAMES:
            return self._name(node1, label, node2)
        if label in _METADATA or (label == _TYPE and node2 in _NODE_TYPES):
            if label == "datatype" or node2 == "property":
                self._relation(node1)  # only properties have a datatype
            return None
        return self._statement(node1, label, node2, datatype)

    def _statement(self, node1: str, label: str, node2: str, datatype: str | None) -> str | None:
        wanted = self.relations.get(label)
        if wanted is None:
            if not _is_symbol(label):
                return f"label is not a relation's id: {label[:60]!r}"
            wanted = self.relations[label] = self.options.wants_relation(label)
        if node2 == "":
            return "node2 is empty where an object is expected"
        if node2[0] in _SYMBOL_NOT or node2 in _BOOLEANS:
            return self._literal(node1, label, node2, datatype) if wanted else None
        if not is_id(node2):
            return f"node2 is not an id: {node2[:60]!r}"
        if "|" in node2 and _LIST.search(node2):
            return "node2 is a list: KGTK has one edge for each value"
        if wanted and node2 not in _NO_VALUE:
            self._head(node1, label)
            self.into.edge(node1, label, node2)
        return None

    def _head(self, node1: str, label: str) -> None:
        if node1 not in self.listed:
            self.listed.add(node1)
            self.into.listed(node1)
            if is_relation_id(node1):
                self._relation(node1)
        self._relation(label)

    def _relation(self, local: str) -> None:
        if local not in self.noted:
            self.noted.add(local)
            self.into.relation(local)

    def _name(self, node1: str, kind: str, node2: str) -> str | None:
        start = node2[:1]
        if start == "'":
            end = node2.rfind("'@")
            text, language = node2[1:end], node2[end + 2 :]
            plain = end > 0 and "\\" not in text and "'" not in text
            rank = self.ranks.get(language) if plain else None
            if rank is None:
                match = _LANGUAGE_STRING.match(node2)
                if match is None:
                    return f"a {kind} must be written as 'text'@language or \"text\""
                rank, text = self.ranks.get(match.group(2)), unescaped(match.group(1))
                if rank is None:
                    return None  # another language: not wanted, not wrong
        elif start == '"' and (match := STRING.match(node2)):
            # A string of no language comes after those of a language that was asked for.
            rank, text = len(self.ranks), unescaped(match.group(1))
        else:
            return f"a {kind} must be written as 'text'@language or \"text\""
        text = one_line(text)
        if not text:
            return f"the {kind} is empty"
        if kind == "label":
            self.into.label(node1, text, rank)
        elif kind == "description":
            self.into.describe(node1, text, rank)
        else:
            self.into.alias(node1, text, rank)
        if is_relation_id(node1):
            self._relation(node1)
        return None

    def _literal(self, node1: str, label: str, node2: str, datatype: str | None) -> str | None:
        mark = node2[0]
        kind, write = KINDS.get(mark, ("quantity", quantity))
        if kind == "string" and datatype:
            kind = LITERAL_KINDS.get(datatype, datatype)
        if not wants_literal(kind, self.options):
            return None
        if mark == "'":
            match = _LANGUAGE_STRING.match(node2)
            if match is None:
                return "node2 must be written as 'text'@language"
            if match.group(2) not in self.ranks:
                return None
            text, unit = one_line(unescaped(match.group(1))), None
        else:
            try:
                text, unit = write(node2)
            except ValueProblemError as problem:
                return f"node2: {problem}"
        if not text:
            return "node2 is a text without words"
        self._head(node1, label)
        self.into.literal(node1, label, text, unit)
        return None


def _is_symbol(value: str) -> bool:
    return value[:1] not in _SYMBOL_NOT and is_id(value) and not ("|" in value and _LIST.search(value))
