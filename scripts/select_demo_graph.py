"""Choose the demo's small knowledge graph from a larger extract of Wikidata in KGTK files.

    python scripts/select_demo_graph.py --source FOLDER --out data_lake/input/knowledge_graphs/demo_wikidata

The source is a folder with ``labels.en``, ``aliases.en``, ``descriptions.en``, ``derived.P31``,
``derived.P279``, ``claims.wikibase-property`` and ``metadata.property.datatypes`` as ``.tsv.gz``, such as the
Arnold extract of usc-isi-i2/kgtk-tutorial-files. Nothing is looked up elsewhere and nothing is
random: the same source gives the same bytes. What is chosen, and why, stands in ``demo_graph_subjects.py`` and
in the README beside the output; it was fixed by subject (health, persons, time, codes, quantities, places,
administration), without trying how a matcher does with it.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from demo_graph_subjects import (
    DOWN,
    EXCLUDED_DATATYPES,
    EXCLUDED_LABELS,
    EXCLUDED_SUBJECTS,
    HUB,
    IDENTIFIER_CLASSES,
    IDENTIFIER_TERMS,
    INSTANCE_OF,
    INSTANCES_OF,
    NEUTRAL_CLASSES,
    PARTICULAR,
    PROPERTY_RELATIONS,
    SUBCLASS_OF,
    SUBJECT_CLASSES,
    SUBJECT_TERMS,
    UP,
    VCARD,
)

STRING = re.compile(r"^'(?P<text>.*)'@(?P<language>[a-z-]+)$")
HEADER = ("node1", "label", "node2", "id")


class SelectionError(ValueError):
    """The source is not what the selection was written for; the message names the file or id."""


@dataclass(frozen=True)
class Edge:
    """One statement or name, as a row of a KGTK file."""

    node1: str
    label: str
    node2: str
    id: str


@dataclass
class Source:
    """What the selection needs of the source, in memory."""

    labels: dict[str, Edge]
    aliases: dict[str, list[Edge]]
    descriptions: dict[str, Edge]
    instance_of: list[Edge]
    subclass_of: list[Edge]
    between_properties: list[Edge]
    datatypes: dict[str, str]
    names: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = {node: text_of(edge) for node, edge in self.labels.items()}


def text_of(edge: Edge) -> str:
    """Return the plain text of a KGTK language string such as ``'video'@en``.

    Raises:
        SelectionError: the value is not of that form.
    """
    found = STRING.match(edge.node2)
    if found is None:
        raise SelectionError(f"{edge.id}: {edge.node2[:80]!r} is not a KGTK string with a language")
    return re.sub(r"\\(.)", r"\1", found["text"])


def read_edges(path: Path) -> Iterator[Edge]:
    """Read a gzipped KGTK edge file, whatever the order of its columns.

    Raises:
        SelectionError: the file is absent, a column is missing, or a row is of another width.
    """
    if not path.is_file():
        raise SelectionError(f"{path} is not there: --source must be a folder with the extract's .tsv.gz files")
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        header = next(lines, "").rstrip("\n").split("\t")
        if missing := set(HEADER) - set(header):
            raise SelectionError(f"{path}: the header lacks {', '.join(sorted(missing))}")
        places = [header.index(name) for name in HEADER]
        for number, line in enumerate(lines, start=2):
            cells = line.rstrip("\n").split("\t")
            if len(cells) == len(header) - 1 and header[-1] == "id":
                cells.append("")  # the table of datatypes leaves the last cell out in places
            if len(cells) != len(header):
                raise SelectionError(f"{path}, line {number}: {len(cells)} cells where the header has {len(header)}")
            yield Edge(*(cells[place] for place in places))


def read_source(folder: Path) -> Source:
    """Read the whole extract.

    Raises:
        SelectionError: a file is absent or malformed.
    """
    aliases: dict[str, list[Edge]] = defaultdict(list)
    for edge in read_edges(folder / "aliases.en.tsv.gz"):
        aliases[edge.node1].append(edge)
    return Source(
        labels={edge.node1: edge for edge in read_edges(folder / "labels.en.tsv.gz")},
        aliases=dict(aliases),
        descriptions={edge.node1: edge for edge in read_edges(folder / "descriptions.en.tsv.gz")},
        instance_of=list(read_edges(folder / "derived.P31.tsv.gz")),
        subclass_of=list(read_edges(folder / "derived.P279.tsv.gz")),
        between_properties=[
            edge for edge in read_edges(folder / "claims.wikibase-property.tsv.gz") if edge.label in PROPERTY_RELATIONS
        ],
        datatypes={
            edge.node1: edge.node2
            for edge in read_edges(folder / "metadata.property.datatypes.tsv.gz")
            if edge.label == "datatype"
        },
    )


def check_names(source: Source, *stated: dict[str, str]) -> None:
    """Check that the ids in the constants are what they are taken for.

    Raises:
        SelectionError: an id has no label, or another one.
    """
    for names in stated:
        for node, name in names.items():
            if source.names.get(node) != name:
                raise SelectionError(
                    f"{node} is taken for {name!r}, but the source calls it {source.names.get(node)!r}"
                )


def choose_properties(source: Source) -> set[str]:
    """Choose properties by subject, and the relations that the graph's own statements use."""
    classes: dict[str, set[str]] = defaultdict(set)
    for edge in source.instance_of:
        if edge.node1.startswith("P"):
            classes[edge.node1].add(edge.node2)
    chosen = {INSTANCE_OF, SUBCLASS_OF, *PROPERTY_RELATIONS}
    for node, name in source.names.items():
        if not node.startswith("P"):
            continue
        subjects = classes[node]
        subject_names = [source.names.get(subject, "") for subject in subjects]
        if any(EXCLUDED_SUBJECTS.search(subject) for subject in subject_names) or EXCLUDED_LABELS.search(name):
            continue
        datatype = source.datatypes.get(node)
        if datatype in EXCLUDED_DATATYPES and VCARD not in subjects:
            continue
        catalogue = datatype == "external-id" or (
            datatype is None and any("identif" in subject or "authority" in subject for subject in subject_names)
        )
        if subjects & (IDENTIFIER_CLASSES if catalogue else SUBJECT_CLASSES).keys():
            chosen.add(node)
        elif not subjects - NEUTRAL_CLASSES.keys():
            words = f"{name}. {text_of(source.descriptions[node]) if node in source.descriptions else ''}"
            if (IDENTIFIER_TERMS if catalogue else SUBJECT_TERMS).search(words):
                chosen.add(node)
    return chosen


def choose_items(source: Source, properties: set[str]) -> tuple[set[str], dict[str, int]]:
    """Choose items: the seeds, their superclasses, their subclasses to a depth, and values.

    Returns:
        The items, and the hubs that were not followed down with the number of their children.
    """
    up: dict[str, set[str]] = defaultdict(set)
    down: dict[str, set[str]] = defaultdict(set)
    for edge in source.subclass_of:
        if edge.node1 in source.names and edge.node2 in source.names:
            up[edge.node1].add(edge.node2)
            down[edge.node2].add(edge.node1)
    members: dict[str, set[str]] = defaultdict(set)
    for edge in source.instance_of:
        if edge.node1 in source.names and edge.node1.startswith("Q"):
            members[edge.node2].add(edge.node1)

    hubs: dict[str, int] = {}
    chosen: set[str] = set()

    def children(node: str, of: dict[str, set[str]]) -> set[str]:
        found = of[node]
        if len(found) > HUB:
            hubs[node] = len(found)
            return set()
        return {child for child in found if not PARTICULAR.search(source.names[child])}

    for seeds, depth in DOWN:
        level = set(seeds)
        chosen |= level
        for _ in range(depth):
            level = {child for node in level for child in children(node, down)} - chosen
            chosen |= level
    for node in INSTANCES_OF:
        chosen |= children(node, members)
    # Like properties hang together by their classes; a class that has one of them only ties nothing.
    shared = Counter(edge.node2 for edge in source.instance_of if edge.node1 in properties)
    chosen |= {node for node, count in shared.items() if count > 1 and node in source.names}
    level = set(chosen)
    for _ in range(UP):
        level = {parent for node in level for parent in up[node]} - chosen
        chosen |= level
    return {node for node in chosen if node.startswith("Q")}, hubs


def choose_statements(source: Source, nodes: set[str]) -> list[Edge]:
    """Take every statement of the kept relations between two chosen nodes, without loops, once each."""
    found: dict[tuple[str, str, str], Edge] = {}
    for edge in (*source.instance_of, *source.subclass_of, *source.between_properties):
        if edge.node1 in nodes and edge.node2 in nodes and edge.node1 != edge.node2:
            found.setdefault((edge.node1, edge.label, edge.node2), edge)
    return list(found.values())


def components_of(nodes: Iterable[str], edges: Iterable[Edge]) -> list[set[str]]:
    """Return the connected components, directions ignored, the largest first."""
    near: dict[str, set[str]] = {node: set() for node in nodes}
    for edge in edges:
        near[edge.node1].add(edge.node2)
        near[edge.node2].add(edge.node1)
    found: list[set[str]] = []
    left = set(near)
    while left:
        start = min(left)
        reached, waiting = {start}, [start]
        while waiting:
            for other in near[waiting.pop()] - reached:
                reached.add(other)
                waiting.append(other)
        left -= reached
        found.append(reached)
    return sorted(found, key=lambda part: (-len(part), min(part)))


def _order(edge: Edge) -> tuple[str, int, str, str, str]:
    return edge.node1[0], int(edge.node1[1:]), edge.label, edge.node2, edge.id


def write_edges(path: Path, edges: Iterable[Edge]) -> int:
    """Write a KGTK edge file, sorted by id of the first node, and return the number of rows."""
    rows = sorted(edges, key=_order)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.write("\t".join(HEADER) + "\n")
        out.writelines("\t".join((row.node1, row.label, row.node2, row.id)) + "\n" for row in rows)
    return len(rows)


def select(source_folder: Path, out: Path) -> str:
    """Choose the graph, write its four files into ``out``, and return a report of what was chosen.

    Raises:
        SelectionError: the source is not what the selection was written for.
    """
    source = read_source(source_folder)
    check_names(
        source, SUBJECT_CLASSES, IDENTIFIER_CLASSES, NEUTRAL_CLASSES, INSTANCES_OF, *(seeds for seeds, _ in DOWN)
    )
    properties = choose_properties(source)
    items, hubs = choose_items(source, properties)
    statements = choose_statements(source, properties | items)
    # An item without any statement is a word without a place in the graph. A property without one is still
    # a concept that both sides of a pair may mean.
    linked = {node for edge in statements for node in (edge.node1, edge.node2)}
    nodes = properties | (items & linked)

    out.mkdir(parents=True, exist_ok=True)
    write_edges(out / "labels.en.tsv", (source.labels[node] for node in nodes))
    write_edges(out / "aliases.en.tsv", (edge for node in nodes for edge in source.aliases.get(node, ())))
    write_edges(
        out / "descriptions.en.tsv", (source.descriptions[node] for node in nodes if node in source.descriptions)
    )
    write_edges(out / "claims.tsv", statements)

    parts = components_of(nodes, statements)
    relations = Counter(edge.label for edge in statements)
    degree = Counter(node for edge in statements for node in (edge.node1, edge.node2))
    lines = [
        f"entities: {len(nodes)} ({len(nodes & properties)} properties, {len(nodes & items)} items)",
        f"statements: {len(statements)} ("
        + ", ".join(f"{count} {source.names[label]}" for label, count in relations.most_common())
        + ")",
        f"connected components: {len(parts)}; the largest has {len(parts[0]) if parts else 0} entities",
        "most statements: " + ", ".join(f"{source.names[node]} {count}" for node, count in degree.most_common(12)),
        "not followed down: "
        + ", ".join(f"{source.names[node]} {count}" for node, count in sorted(hubs.items(), key=lambda hub: -hub[1])),
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--source", type=Path, required=True, help="folder with the extract's .tsv.gz files")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the chosen graph to")
    chosen = parser.parse_args(arguments)
    try:
        report = select(chosen.source, chosen.out)
    except SelectionError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(report + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
