"""Reading the text files of Wikidata5M: names of entities and relations, descriptions, triples.

The data set: Wang et al., "KEPLER: A Unified Model for Knowledge Embedding and Pre-trained Language Representation"
(2021). Its layout, tabs between the cells: an id and its names, the first of them the preferred one, in
``wikidata5m_entity.txt`` and ``wikidata5m_relation.txt``; an id and a paragraph of Wikipedia in
``wikidata5m_text.txt``; head, relation and tail in all other files. The paragraphs are cut to their first sentence
or two, at most 300 characters, because a description is one line everywhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.lines import files_with_suffix, lines_of, shortened
from kgrag_assets.knowledge.sources.wikidata_values import one_line

NAMES, DESCRIPTIONS, TRIPLES = "names", "descriptions", "triples"
_KIND_IN_NAME = (
    (re.compile(r"(?:^|[_.-])(?:entity|relation)(?:[_.-]|$)"), NAMES),
    (re.compile(r"(?:^|[_.-])text(?:[_.-]|$)"), DESCRIPTIONS),
    (re.compile(r"triplet|transductive|inductive|(?:^|[_.-])(?:train|valid|test)(?:[_.-]|$)"), TRIPLES),
)
_ID = re.compile(r"[QP][1-9][0-9]{0,14}\Z")
_RELATION = re.compile(r"P[1-9][0-9]{0,14}\Z")
# Lines that are looked at where the name of a file does not say what it holds.
_LINES_SEEN = 200
# Names are shorter than this, paragraphs are longer, on average.
_PARAGRAPH = 80


def files_of(folder: Path) -> list[Path]:
    """List the files of the data set in a folder: ``.txt``, plain, gzip or bzip2, without read-me files."""
    return [path for path in files_with_suffix(folder, (".txt",)) if not _is_about(path)]


def reader_of(path: Path) -> Wikidata5MReader:
    """Return the reader of a file: what the file holds is told by its name where that says it, else by its lines."""
    name = path.name.lower()
    stem = name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".txt")
    for pattern, kind in _KIND_IN_NAME:
        if pattern.search(stem.removeprefix("wikidata5m_")):
            return Wikidata5MReader(kind)
    return Wikidata5MReader(None)


def _is_about(path: Path) -> bool:
    return path.name.lower().startswith(("readme", "license", "licence"))


@dataclass(frozen=True)
class Wikidata5MReader:
    """Reads one of the files; ``kind`` is ``names``, ``descriptions`` or ``triples``, None where its lines tell."""

    kind: str | None = None

    @property
    def version(self) -> str:
        """Name of this way to read."""
        return "wikidata5m/1"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:
        """Return what the file holds."""
        kind = self.kind or _kind_of(start)
        if kind is None:
            reason = f"{file}: no line is an id with names, an id with a text, or head, relation and tail"
            into.reject(None, reason, start[:200].decode("utf-8", "replace"))
            return None
        return kind.encode()

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:  # noqa: ARG002  (the port's form)
        """Read lines of the kind that ``context`` says."""
        kind = context.decode()
        lines = lines_of(block, into)
        if kind == TRIPLES:
            _read_triples(lines, options, into)
            return
        take = _take_names if kind == NAMES else _take_description
        for row, line in enumerate(lines, start=1):
            if not line or line.isspace():
                continue
            local, *cells = line.split("\t")
            reason = take(local, cells, into) if _ID.match(local) else f"the first cell is not an id: {local[:60]!r}"
            if reason is not None:
                into.reject(row, reason, line)


def _kind_of(start: bytes) -> str | None:
    """Tell what a file holds by its first lines."""
    rows = [line.rstrip("\r").split("\t") for line in start.decode("utf-8", "replace").split("\n")[:_LINES_SEEN]]
    rows = [row for row in rows if _ID.match(row[0]) and len(row) > 1]
    if not rows:
        return None
    triples = sum(len(row) == 3 and bool(_RELATION.match(row[1])) for row in rows)
    if triples * 2 > len(rows):
        return TRIPLES
    texts = [len(row[1]) for row in rows if len(row) == 2]
    if len(texts) == len(rows) and sum(texts) > _PARAGRAPH * len(texts):
        return DESCRIPTIONS
    return NAMES


def _take_names(local: str, cells: list[str], into: Collector) -> str | None:
    names = dict.fromkeys(name for name in map(one_line, cells) if name)
    if not names:
        return "the id has no name"
    label, *aliases = names
    into.label(local, label)
    for alias in aliases:
        into.alias(local, alias)
    if local[0] == "P":
        into.relation(local)
    return None


def _take_description(local: str, cells: list[str], into: Collector) -> str | None:
    text = shortened(" ".join(cells))
    if not text:
        return "the text is empty"
    into.describe(local, text)
    return None


def _read_triples(lines: list[str], options: ReadOptions, into: Collector) -> None:
    wanted: dict[str, bool] = {}
    listed: set[str] = set()
    for row, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        cells = line.split("\t")
        if len(cells) != 3:
            into.reject(row, f"{len(cells)} columns where head, relation and tail are expected", line)
            continue
        head, relation, tail = cells
        take = wanted.get(relation)
        if take is None:
            if not _RELATION.match(relation):
                into.reject(row, f"the relation is not a property: {relation[:60]!r}", line)
                continue
            take = wanted[relation] = options.wants_relation(relation)
            if take:
                into.relation(relation)
        if head not in listed:
            if not _ID.match(head):
                into.reject(row, f"the head is not an id: {head[:60]!r}", line)
                continue
            if take:
                listed.add(head)
                into.listed(head)
        if not _ID.match(tail):
            into.reject(row, f"the tail is not an id: {tail[:60]!r}", line)
        elif take:
            into.edge(head, relation, tail)
