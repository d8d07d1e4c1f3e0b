"""Reading UMLS's Rich Release Format: MRCONSO (names), MRDEF (definitions), MRSTY (semantic types), MRREL (relations).

The format: UMLS Reference Manual, https://www.ncbi.nlm.nih.gov/books/NBK9685/. A concept is in the graph where
MRCONSO has a name for it of the chosen languages, sources and suppress flags: the other files say nothing about
sources of concepts, so only MRCONSO lists them, and what is said about others has no head and is left out.
MRDOC (names and inverses of relations) and MRSAB (languages of sources) are read too where they lie beside.
Definitions are cut to their first sentence or two, at most 300 characters.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.lines import is_id, lines_of, shortened
from kgrag_assets.knowledge.sources.umls_documents import NO_DOCUMENTS, Documents, language_code, read_documents
from kgrag_assets.knowledge.sources.umls_relations import Directed, directed, words_of
from kgrag_assets.knowledge.sources.wikidata_values import one_line

SEMANTIC_TYPE = "has_semantic_type"
# Obsolete, suppressed by an editor, suppressed by source and term type.
SUPPRESSED = ("O", "E", "Y")
_FILES = ("MRCONSO", "MRDEF", "MRSTY", "MRREL")
_PACKED = (".RRF", ".RRF.gz", ".RRF.bz2")
_WIDTHS = {"MRCONSO": 18, "MRDEF": 8, "MRSTY": 6, "MRREL": 16}
_CUI, _TUI = re.compile(r"C[0-9]{7}\Z"), re.compile(r"T[0-9]{3,4}\Z")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# Names of one language are ranked 0 to 7 by TS, STT and ISPREF.
_RANKS_OF_LANGUAGE = 8


def files_of(folder: Path) -> list[Path]:
    """List MRCONSO, MRDEF, MRSTY and MRREL in a folder, at any depth, plain, gzip or bzip2; or a file that is given."""
    if folder.is_file():
        return [folder]
    names = {name + packed: place for place, name in enumerate(_FILES) for packed in _PACKED}
    found = [path for path in folder.rglob("MR*.RRF*") if path.name in names and path.is_file()]
    return sorted(found, key=lambda path: (names[path.name], path))


def reader_of(path: Path) -> UmlsReader:
    """Return the reader of one of the files, told by its name, with what MRDOC and MRSAB beside it say."""
    return UmlsReader(path.name.partition(".")[0], read_documents(path.parent))


@dataclass(frozen=True)
class UmlsReader:
    """Reads one of the files: ``table`` is its name without ending.

    Options of ``kg.yaml``: ``languages`` (``en`` or UMLS's own ``ENG``), ``sources`` (root source abbreviations,
    all where it is empty) and ``suppress`` (flags that are left out; O, E and Y where it is not given, ``none``
    leaves nothing out).
    """

    table: str
    documents: Documents = field(default=NO_DOCUMENTS)

    @property
    def version(self) -> str:
        """Name of this way to read, with what the documents beside the files say."""
        return f"umls/1/{self.documents.key}"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:
        """Return the table's name, after a look at the columns of its first line."""
        width = _WIDTHS.get(self.table)
        if width is None:
            into.reject(None, f"{file} is none of {', '.join(_FILES)}", "")
            return None
        line = start.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        if len(_cells(line)) != width:
            into.reject(1, f"{self.table} has {width} columns, each with a | behind it", line)
            return None
        return self.table.encode()

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:  # noqa: ARG002  (the port's form)
        """Read rows."""
        table = context.decode()
        take = _TAKE[table](_Choice(options, self.documents), into)
        width = _WIDTHS[table]
        for row, line in enumerate(lines_of(block, into), start=1):
            if not line or line.isspace():
                continue
            cells = _cells(line)
            if len(cells) != width:
                into.reject(row, f"{len(cells)} columns where {table} has {width}", line)
                continue
            reason = take(cells)
            if reason is not None:
                into.reject(row, reason, line)


def _cells(line: str) -> list[str]:
    return line.removesuffix("|").split("|")


class _Choice:
    """What the settings choose: ranks of languages, sources, flags."""

    def __init__(self, options: ReadOptions, documents: Documents) -> None:
        self.options, self.documents = options, documents
        codes = dict.fromkeys(code for code in map(language_code, options.languages) if code)
        self.languages = {code: rank for rank, code in enumerate(codes)}
        self.sources = frozenset(options.option("sources"))
        self.suppress = frozenset(flag.upper() for flag in options.option("suppress") or SUPPRESSED)

    def takes(self, source: str, flag: str) -> bool:
        """Whether rows of a source with a flag are taken."""
        return flag not in self.suppress and (not self.sources or source in self.sources)


_Take = Callable[[list[str]], str | None]


def _names(choice: _Choice, into: Collector) -> _Take:
    """Take MRCONSO: the preferred name of a concept is the one with TS = P, STT = PF and ISPREF = Y.

    Where that one is not chosen, the next in this order stands for it. Every other one is an alias.
    """

    def take(cells: list[str]) -> str | None:
        cui, language, status, kind, preferred, source, flag = (cells[at] for at in (0, 1, 2, 4, 6, 11, 16))
        if not _CUI.match(cui):
            return f"the first column is not a CUI: {cui[:60]!r}"
        place = choice.languages.get(language)
        if place is None or not choice.takes(source, flag):
            return None
        text = one_line(cells[14])
        if not text:
            return "the name is empty"
        rank = 4 * (status != "P") + 2 * (kind != "PF") + (preferred != "Y")
        into.label(cui, text, place * _RANKS_OF_LANGUAGE + rank)
        if rank or place:
            into.alias(cui, text, place * _RANKS_OF_LANGUAGE + rank)
        return None

    return take


def _definitions(choice: _Choice, into: Collector) -> _Take:
    """Take MRDEF: the first definition in the first of the languages is the description."""

    def take(cells: list[str]) -> str | None:
        cui, source, text, flag = cells[0], cells[4], cells[5], cells[6]
        if not _CUI.match(cui):
            return f"the first column is not a CUI: {cui[:60]!r}"
        place = choice.languages.get(choice.documents.language_of(source))
        if place is None or not choice.takes(source, flag):
            return None
        if "<" in text:  # some sources write HTML
            text = html.unescape(_TAG.sub(" ", text))
        text = shortened(text)
        if not text:
            return "the definition is empty"
        into.describe(cui, text, place)
        return None

    return take


def _types(choice: _Choice, into: Collector) -> _Take:
    """Take MRSTY: concept, has semantic type, type."""
    wanted = choice.options.wants_relation(SEMANTIC_TYPE)
    types: dict[str, str] = {}
    if wanted:
        into.relation(SEMANTIC_TYPE)
        into.label(SEMANTIC_TYPE, words_of(SEMANTIC_TYPE, {}))

    def take(cells: list[str]) -> str | None:
        cui, tui, name = cells[0], cells[1], one_line(cells[3])
        if not _CUI.match(cui):
            return f"the first column is not a CUI: {cui[:60]!r}"
        if not _TUI.match(tui):
            return f"the second column is not a TUI: {tui[:60]!r}"
        if not name:
            return "the semantic type has no name"
        if wanted:
            if tui not in types:
                types[tui] = name
                into.listed(tui)
                into.label(tui, name)
            into.edge(cui, SEMANTIC_TYPE, tui)
        return None

    return take


def _relations(choice: _Choice, into: Collector) -> _Take:
    """Take MRREL: each relation once, in one direction; none of a concept to itself."""
    inverses, names = choice.documents.inverses, choice.documents.names
    known: dict[tuple[str, str], Directed | None] = {}
    edges: set[tuple[str, str, str]] = set()

    def take(cells: list[str]) -> str | None:
        cui1, rel, cui2, rela, source, flag = (cells[at] for at in (0, 3, 4, 7, 10, 14))
        if not (_CUI.match(cui1) and _CUI.match(cui2)):
            return f"not two CUIs: {cui1[:30]!r}, {cui2[:30]!r}"
        if not choice.takes(source, flag):
            return None
        name = (rel, rela)
        if name not in known:
            if not rel.isalpha() or (rela and not is_id(rela)):
                return f"not a relation: {rel[:30]!r}, {rela[:60]!r}"
            known[name] = _wanted(directed(rel, rela, inverses), names, choice, into)
        kept = known[name]
        if kept is None or cui1 == cui2:
            return None
        swapped = cui2 > cui1 if kept.both_ways else not kept.second_first
        edge = (cui1, kept.relation, cui2) if swapped else (cui2, kept.relation, cui1)
        # Sources repeat one another, atom by atom.
        if edge not in edges:
            edges.add(edge)
            into.edge(*edge)
        return None

    return take


def _wanted(kept: Directed | None, names: Mapping[str, str], choice: _Choice, into: Collector) -> Directed | None:
    if kept is None or not choice.options.wants_relation(kept.relation):
        return None
    into.relation(kept.relation)
    into.label(kept.relation, words_of(kept.relation, names))
    return kept


_TAKE: dict[str, Callable[[_Choice, Collector], _Take]] = {
    "MRCONSO": _names,
    "MRDEF": _definitions,
    "MRSTY": _types,
    "MRREL": _relations,
}
