"""Generate a graph with the shape of Wikidata5M: 4.6 M entities, 20.6 M triples, 822 relations, at a scale.

What a search meets in Wikidata is here, too: classes such as human and taxon with a million edges each, values such
as countries with many, communities in which most edges lie, and a few edges between them. Labels are readable words.
The same seed and scale make the same graph.

    python bench/graph_shape.py /tmp/graph --scale 0.1                        # Parquet, one folder a bucket
    python bench/graph_shape.py /tmp/graph --scale 0.1 --format wikidata5m    # the text files of Wikidata5M
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, bucket_of

ENTITIES, TRIPLES, RELATIONS = 4_600_000, 20_600_000, 822
BUCKETS = 16
# Shares of the triples: the class of each entity is one triple; then values, other communities, the own community.
VALUE_SHARE, FAR_SHARE = 0.17, 0.05
# Classes by their share of all entities; the rest falls on smaller ones, ever rarer.
CLASSES = {"human": 0.24, "taxon": 0.22, "film": 0.05, "river": 0.03, "village": 0.05, "asteroid": 0.03}
SMALL_CLASSES = 400
VALUES = 3_000
KNOWN_RELATIONS = (
    ("P31", "instance of"),
    ("P17", "country"),
    ("P106", "occupation"),
    ("P19", "place of birth"),
    ("P279", "subclass of"),
    ("P361", "part of"),
    ("P50", "author"),
    ("P171", "parent taxon"),
    ("P131", "located in"),
    ("P40", "child"),
    ("P26", "spouse"),
    ("P161", "cast member"),
    ("P57", "director"),
    ("P108", "employer"),
    ("P69", "educated at"),
    ("P54", "member of sports team"),
    ("P1412", "language spoken"),
    ("P136", "genre"),
    ("P495", "country of origin"),
    ("P127", "owned by"),
)


@dataclass(frozen=True)
class Shape:
    """A graph as numbers: entities from 0, edges as int32 of equal length, and the texts that name them."""

    ids: pl.Series
    labels: pl.Series
    descriptions: pl.Series
    aliases: pl.Series
    relation_ids: list[str]
    relation_labels: list[str]
    heads: np.ndarray
    relations: np.ndarray
    tails: np.ndarray
    communities: np.ndarray
    hubs: np.ndarray


def words(count: int, random: np.random.Generator) -> pl.Series:
    """Return distinct made-up words of two or three syllables."""
    onsets, vowels = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"], ["a", "e", "i", "o", "u"]
    codas = ["", "", "n", "r", "l", "s"]
    made: dict[str, None] = {}
    while len(made) < count:
        picks = random.integers(0, 1 << 30, size=(count, 9))
        for row in picks.tolist():
            parts = [
                onsets[row[place] % len(onsets)] + vowels[row[place + 1] % len(vowels)]
                for place in range(0, 4 + 2 * (row[8] % 2), 2)
            ]
            made["".join(parts) + codas[row[7] % len(codas)]] = None
            if len(made) == count:
                break
    return pl.Series(list(made)).str.to_titlecase()


def zipf(size: int, count: int, exponent: float, random: np.random.Generator) -> np.ndarray:
    """Draw ``count`` places in 0..size-1, small ones often: their frequency falls with that power of the place."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    ends = np.cumsum(weights)
    return np.searchsorted(ends, random.random(count) * ends[-1]).astype(np.int32)


def generate(scale: float, seed: int) -> Shape:  # noqa: PLR0915  one draw after another, in a fixed order
    """Make a graph of this share of Wikidata5M's size."""
    random = np.random.default_rng(seed)
    entities, triples = max(20_000, int(ENTITIES * scale)), max(90_000, int(TRIPLES * scale))
    classes = len(CLASSES) + SMALL_CLASSES
    hubs = np.arange(classes + VALUES, dtype=np.int32)
    # Communities lie one after another among the numbers; their sizes follow a power law from 20 to 20,000.
    sizes = np.minimum(20 * (1 - random.random(entities // 60)) ** (-1 / 1.1), 20_000).astype(np.int64)
    sizes = np.repeat(sizes, 2)[: np.searchsorted(np.cumsum(np.repeat(sizes, 2)), entities - len(hubs)) + 1]
    community = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[: entities - len(hubs)]
    while len(community) < entities - len(hubs):
        community = np.concatenate([community, community[: entities - len(hubs) - len(community)]])
    community = np.sort(community)
    starts = np.searchsorted(community, np.arange(community[-1] + 1)).astype(np.int64)
    sizes = np.diff(np.append(starts, len(community)))
    community = np.concatenate([np.full(len(hubs), -1, dtype=np.int32), community])
    starts += len(hubs)

    kind = random.choice(
        classes,
        size=entities,
        p=np.concatenate(
            [
                list(CLASSES.values()),
                (1 - sum(CLASSES.values())) * (weights := 1.0 / np.arange(1, SMALL_CLASSES + 1)) / weights.sum(),
            ]
        ),
    ).astype(np.int32)
    everyone = np.arange(entities, dtype=np.int32)
    members = everyone[len(hubs) :]
    parts = [np.stack([everyone, np.zeros(entities, np.int32), kind])]

    def some(count: int) -> np.ndarray:
        return random.choice(members, size=count)

    values = int(VALUE_SHARE * triples)
    parts.append(
        np.stack(
            [some(values), 1 + zipf(RELATIONS // 4, values, 1.2, random), classes + zipf(VALUES, values, 1.0, random)]
        )
    )
    far = int(FAR_SHARE * triples)
    parts.append(np.stack([some(far), 1 + zipf(RELATIONS - 1, far, 1.0, random), some(far)]))
    have = sum(part.shape[1] for part in parts)
    # In its community an entity links to the few that many link to; some drawn twice are lost again.
    inner = int((triples - have) * 1.25)
    heads = some(inner)
    of = community[heads]
    chosen = (sizes[of] * random.random(inner) ** 3).astype(np.int64)
    tails = (starts[of] + chosen).astype(np.int32)
    favourite = (of.astype(np.int64) * 2654435761 >> 7) % (RELATIONS - 1)
    relations = (1 + (favourite + zipf(RELATIONS - 1, inner, 1.5, random)) % (RELATIONS - 1)).astype(np.int32)
    parts.append(np.stack([heads, relations, tails]))
    edges = np.concatenate(parts, axis=1)
    del parts
    keys = (edges[0].astype(np.int64) << 36) | (edges[2].astype(np.int64) << 10) | edges[1]
    keys = np.unique(keys[edges[0] != edges[2]])
    if len(keys) > triples:
        keys = np.sort(random.permutation(keys)[:triples])
    heads, tails = (keys >> 36).astype(np.int32), ((keys >> 10) & ((1 << 26) - 1)).astype(np.int32)
    relations = (keys & 1023).astype(np.int32)

    ids = pl.select(
        pl.lit("Q") + pl.Series(random.permutation(4 * entities)[:entities] + 1).cast(pl.String)
    ).to_series()
    first, second = words(2048, random), words(4096, random)
    labels = pl.select(
        first.gather(np.maximum(community, 0) % len(first)) + " " + second.gather(random.integers(0, 4096, entities))
    ).to_series()
    named = [*CLASSES, *(f"{word.lower()} kind" for word in words(SMALL_CLASSES, random))]
    labels = pl.concat([pl.Series(named), *([labels[classes:]])])
    kinds = pl.Series(named).gather(kind)
    descriptions = pl.select(kinds + " of " + first.gather(np.maximum(community, 0) % len(first))).to_series()
    aliases = pl.select(second.gather(random.integers(0, 4096, entities)) + " " + kinds).to_series()
    relation_words = words(RELATIONS, random).str.to_lowercase().to_list()
    relation_ids = [*(id_ for id_, _ in KNOWN_RELATIONS), *(f"P{5000 + place}" for place in range(RELATIONS))][
        :RELATIONS
    ]
    relation_labels = [*(label for _, label in KNOWN_RELATIONS), *(f"{word} of" for word in relation_words)][:RELATIONS]
    return Shape(
        ids, labels, descriptions, aliases, relation_ids, relation_labels, heads, relations, tails, community, hubs
    )


def random_keys(count: int, random: np.random.Generator) -> pl.Series:
    """Return texts of 32 hexadecimal digits: in the place of the hashes that the lake has, which take a minute here."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    content = digits[random.integers(0, 16, size=32 * count, dtype=np.uint8)]
    offsets = np.arange(0, 32 * count + 1, 32, dtype=np.int64)
    return pl.Series(pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(content)))


def write_parquet(shape: Shape, folder: Path, buckets: int, seed: int) -> None:
    """Write rows of ``kg_entities`` and ``kg_triples``, a folder for each bucket, in the bucket that ids fall into."""
    random = np.random.default_rng(seed)
    ids = "wd:" + shape.ids
    bucket = np.fromiter((bucket_of(id_, buckets) for id_ in ids), dtype=np.int32, count=len(ids))
    relation_ids = pl.Series([f"wd:{id_}" for id_ in shape.relation_ids])
    relation_labels = pl.Series(shape.relation_labels)
    order = np.argsort(bucket[shape.heads], kind="stable")
    ends = np.searchsorted(bucket[shape.heads][order], np.arange(buckets + 1))
    for number in range(buckets):
        place = folder / f"bucket_{number:02d}"
        place.mkdir(parents=True, exist_ok=True)
        members = np.flatnonzero(bucket == number)
        rows = pl.DataFrame(
            {
                "entity_id": ids.gather(members),
                "label": shape.labels.gather(members),
                "aliases": shape.aliases.gather(members).to_frame("a").select(pl.concat_list("a")).to_series(),
                "description": shape.descriptions.gather(members),
                "row_key": random_keys(len(members), random),
            }
        ).with_columns(graph=pl.lit("wikidata5m"), bucket=pl.lit(number, pl.Int32), kind=pl.lit("entity"))
        named = [place for place, id_ in enumerate(relation_ids) if bucket_of(id_, buckets) == number]
        relation_rows = pl.DataFrame(
            {
                "entity_id": relation_ids.gather(named),
                "label": relation_labels.gather(named),
                "row_key": [key_of("relation", id_) for id_ in relation_ids.gather(named)],
            },
            schema_overrides={"row_key": pl.String},
        ).with_columns(
            aliases=pl.lit([], dtype=pl.List(pl.String)),
            description=pl.lit(""),
            graph=pl.lit("wikidata5m"),
            bucket=pl.lit(number, pl.Int32),
            kind=pl.lit("relation"),
        )
        pl.concat([rows.select(KG_ENTITIES.names), relation_rows.select(KG_ENTITIES.names)]).write_parquet(
            place / "entities.parquet"
        )
        edges = order[ends[number] : ends[number + 1]]
        heads, relations, tails = shape.heads[edges], shape.relations[edges], shape.tails[edges]
        keys = random_keys(len(edges), random)
        pl.DataFrame(
            {
                "triple_id": keys,
                "head": ids.gather(heads),
                "relation": relation_ids.gather(relations),
                "tail": ids.gather(tails),
                "head_label": shape.labels.gather(heads),
                "relation_label": relation_labels.gather(relations),
                "tail_label": shape.labels.gather(tails),
                "row_key": keys,
            }
        ).with_columns(
            graph=pl.lit("wikidata5m"), bucket=pl.lit(number, pl.Int32), tail_value=pl.lit(None, pl.String)
        ).select(KG_TRIPLES.names).write_parquet(place / "triples.parquet")


def write_wikidata5m(shape: Shape, folder: Path) -> None:
    """Write the text files of Wikidata5M: ids with aliases, ids with a description, and triples, all by tabs."""
    folder.mkdir(parents=True, exist_ok=True)
    entities = pl.DataFrame({"id": shape.ids, "label": shape.labels, "alias": shape.aliases})
    relations = pl.DataFrame({"id": shape.relation_ids, "label": shape.relation_labels})
    described = pl.DataFrame({"id": shape.ids, "text": shape.descriptions})
    relation_ids = pl.Series(shape.relation_ids)
    triples = pl.DataFrame(
        {
            "head": shape.ids.gather(shape.heads),
            "relation": relation_ids.gather(shape.relations),
            "tail": shape.ids.gather(shape.tails),
        }
    )
    for name, frame in (
        ("wikidata5m_entity.txt", entities),
        ("wikidata5m_relation.txt", relations),
        ("wikidata5m_text.txt", described),
        ("wikidata5m_all_triplet.txt", triples),
    ):
        frame.write_csv(folder / name, separator="\t", include_header=False, quote_style="never")


def main() -> int:
    """Generate and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--scale", type=float, default=0.1, help="share of Wikidata5M's size (default: 0.1)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--buckets", type=int, default=BUCKETS)
    parser.add_argument("--format", choices=("parquet", "wikidata5m"), default="parquet")
    options = parser.parse_args()
    began = time.perf_counter()
    shape = generate(options.scale, options.seed)
    if options.format == "parquet":
        write_parquet(shape, options.folder, options.buckets, options.seed)
    else:
        write_wikidata5m(shape, options.folder)
    degrees = np.bincount(shape.tails, minlength=len(shape.ids)) + np.bincount(shape.heads, minlength=len(shape.ids))
    inside = (shape.communities[shape.heads] == shape.communities[shape.tails]) & (shape.communities[shape.heads] >= 0)
    print(
        f"{len(shape.ids):,} entities, {len(shape.heads):,} triples, {len(np.unique(shape.relations))} relations, "
        f"{inside.mean():.0%} of the triples within one of {shape.communities.max() + 1:,} communities; "
        f"degrees: median {int(np.median(degrees))}, 99th percentile {int(np.percentile(degrees, 99))}, "
        f"largest {np.sort(degrees)[-3:].tolist()}; {time.perf_counter() - began:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
