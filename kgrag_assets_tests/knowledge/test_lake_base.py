"""The lake as a knowledge base: names, statements in both directions, literals, some graphs, and questions over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.adjacency_update import bring_adjacency_up_to_date
from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.lake_base import LakeKnowledgeBase
from kgrag_assets.knowledge.lexicon_build import bring_lexicon_up_to_date
from kgrag_assets.knowledge.questions import find_entity_or_value, find_relationship
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_TRIPLES, bucket_of, triple_id_of
from kgrag_assets_tests.knowledge.named_entities import BUCKETS, PARTITIONS, Named, write_entities
from kgrag_assets_tests.knowledge.test_questions import NAMES, STATEMENTS, Fake, never, words_in_common

# Graph, head, relation, tail, literal.
Statement = tuple[str, str, str, str | None, str | None]


def lake_of(root: Path, entities: Sequence[Named], statements: Sequence[Statement]) -> Lake:
    """Make a lake that is up to date; what has no name is called by its id."""
    lake = write_entities(root, entities)
    labels = {one.entity_id: one.label for one in reversed(entities)}
    rows: list[dict[str, object]] = [
        {
            "triple_id": triple_id_of(graph, head, relation, tail, value),
            "graph": graph,
            "bucket": bucket_of(head, BUCKETS),
            "head": head,
            "relation": relation,
            "tail": tail,
            "tail_value": value,
            "head_label": labels.get(head, f"<{head}>"),
            "relation_label": labels.get(relation, f"<{relation}>"),
            "tail_label": value if tail is None else labels.get(tail, f"<{tail}>"),
            "row_key": key_of(graph, head, relation, tail, value),
        }
        for graph, head, relation, tail, value in statements
    ]
    frame = KG_TRIPLES.frame(rows)
    for number, partition in enumerate(PARTITIONS):
        lake.write(KG_TRIPLES, partition, frame.filter(pl.col("bucket") == number))
    bring_adjacency_up_to_date(lake, PARTITIONS)
    bring_lexicon_up_to_date(lake, PARTITIONS)
    return lake


ENTITIES = [
    Named("wd:Q1", "aspirin", ("ASA",), description="medication"),
    Named("wd:Q2", "pain"),
    Named("wd:Q1", "Aspirin (h)", ("acetylsalicylic acid",), graph="h", description="substance"),
    Named("wd:P1", "treats", kind="relation"),
    Named("wd:Q3", "alone"),
]
FACTS: list[Statement] = [
    ("g", "wd:Q1", "wd:P1", "wd:Q2", None),
    ("h", "wd:Q1", "wd:P1", "wd:Q2", None),
    ("h", "wd:Q1", "wd:P9", "wd:Q8", None),
    ("g", "wd:Q1", "wd:P3", None, "180 dalton"),
    ("h", "wd:Q1", "wd:P3", None, "180 dalton"),
    ("h", "wd:Q1", "wd:P3", None, "181 dalton"),
    ("g", "wd:Q2", "wd:P1", "wd:Q1", None),
    ("g", "wd:Q1", "wd:P1", "wd:Q1", None),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of(tmp_path_factory.mktemp("lake"), ENTITIES, FACTS)


def test_statements_in_both_directions_with_literals(lake: Lake) -> None:
    base: KnowledgeBase = LakeKnowledgeBase(lake)
    wanted = [
        Triple("wd:Q1", "wd:P1", "wd:Q1", None, "aspirin", "treats", "aspirin"),
        Triple("wd:Q1", "wd:P1", "wd:Q2", None, "aspirin", "treats", "pain"),
        Triple("wd:Q1", "wd:P9", "wd:Q8", None, "aspirin", "<wd:P9>", "<wd:Q8>"),
        Triple("wd:Q1", "wd:P3", None, "180 dalton", "aspirin", "<wd:P3>", "180 dalton"),
        Triple("wd:Q1", "wd:P3", None, "181 dalton", "aspirin", "<wd:P3>", "181 dalton"),
        Triple("wd:Q2", "wd:P1", "wd:Q1", None, "pain", "treats", "aspirin"),
    ]
    assert base.entity_triples("wd:Q1") == wanted
    for limit in range(8):
        assert base.entity_triples("wd:Q1", limit) == wanted[:limit]
    assert base.entity_triples("wd:Q8") == [wanted[2]]
    assert base.entity_triples("wd:Q99") == []
    assert LakeKnowledgeBase(lake, literals=False).entity_triples("wd:Q1") == [*wanted[:3], wanted[5]]


def test_names(lake: Lake) -> None:
    base = LakeKnowledgeBase(lake)
    assert base.name == "g, h"
    assert LakeKnowledgeBase(lake, name="ours").name == "ours"
    assert base.entity_info("wd:Q1") == EntityInfo("wd:Q1", "entity", "aspirin", ("ASA",), "medication")
    assert base.entity_info("wd:P1") == EntityInfo("wd:P1", "relation", "treats", (), "")
    # Without a row, as the statements call it.
    assert base.entity_info("wd:Q8") == EntityInfo("wd:Q8", "entity", "<wd:Q8>", (), "")
    assert base.entity_info("wd:P9") == EntityInfo("wd:P9", "relation", "<wd:P9>", (), "")
    assert base.entity_info("wd:Q99") is None
    assert [one.entity_id for one in base.entity_linking("asprin")] == ["wd:Q1"]
    found = base.entity_linking("unheard of", ["ASA", "pain"])
    assert [(one.entity_id, round(one.score, 3)) for one in found] == [("wd:Q2", 0.9), ("wd:Q1", 0.81)]
    assert base.entity_linking("aspirin", k=0) == []


def test_only_the_graphs_that_were_chosen(lake: Lake) -> None:
    one, two = LakeKnowledgeBase(lake, ["g"]), LakeKnowledgeBase(lake, ["h"])
    assert two.entity_info("wd:Q1") == EntityInfo(
        "wd:Q1", "entity", "Aspirin (h)", ("acetylsalicylic acid",), "substance"
    )
    assert two.entity_info("wd:Q3") is None
    assert one.entity_info("wd:Q8") is None
    assert [triple.tail or triple.value for triple in two.entity_triples("wd:Q1")] == [
        "wd:Q2",
        "wd:Q8",
        "180 dalton",
        "181 dalton",
    ]
    assert [triple.value for triple in one.entity_triples("wd:Q1") if triple.tail is None] == ["180 dalton"]
    assert one.entity_linking("acetylsalicylic acid") == []
    with pytest.raises(KnowledgeError, match="does not have the knowledge graph 'i'"):
        LakeKnowledgeBase(lake, ["i"]).entity_linking("aspirin")


def test_nothing_is_opened_before_it_is_asked(tmp_path: Path) -> None:
    base = LakeKnowledgeBase(Lake.at(tmp_path / "nothing"))
    with pytest.raises(KnowledgeError, match="kg_lexicon"):
        base.entity_info("wd:Q1")
    with pytest.raises(KnowledgeError, match="materialize kg_graph"):
        base.entity_triples("wd:Q1")


def test_questions_are_answered_as_by_any_other_base(tmp_path: Path) -> None:
    entities = [
        Named(one, label, description=about, kind="relation" if ":P" in one else "entity")
        for one, (label, about) in NAMES.items()
    ]
    lake = lake_of(tmp_path, entities, [("g", *statement) for statement in STATEMENTS])
    ours, fake = LakeKnowledgeBase(lake), Fake()
    for entity in ("aspirin", "wd:Q1", "Aspirin", "Bayer AG", "wd:Q5", "wd:Q6", "wd:Q99", ""):
        for relation in ("condition treated", "performer", "made by", "mass"):
            mine, its = (find_entity_or_value(base, entity, relation, words_in_common) for base in (ours, fake))
            assert (mine.source, mine.relation, mine.values, mine.score) == (
                its.source,
                its.relation,
                its.values,
                its.score,
            )
    assert find_entity_or_value(ours, "wd:Q1", "mass", never).values[0].value == "180.04 dalton"
    for first, second in (("aspirin", "pain"), ("pain", "aspirin"), ("wd:Q4", "Bayer AG"), ("wd:Q1", "wd:Q3")):
        mine_too, its_too = (find_relationship(base, first, second) for base in (ours, fake))
        assert mine_too.relationships == its_too.relationships
        assert mine_too.relationships


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("gh"),
            st.sampled_from(["wd:Q1", "wd:Q2", "wd:Q3"]),
            st.sampled_from(["wd:P1", "wd:P2"]),
            st.sampled_from(["wd:Q1", "wd:Q2", "wd:Q8", None]),
        ),
        max_size=12,
    )
)
def test_every_statement_is_found_from_both_ends_and_no_other(drawn: list[tuple[str, str, str, str | None]]) -> None:
    statements: list[Statement] = [
        (graph, head, relation, tail, None if tail else "7") for graph, head, relation, tail in dict.fromkeys(drawn)
    ]
    entities = [Named(f"wd:Q{number}", f"thing {number}", graph=graph) for number in (1, 2, 3) for graph in "gh"]
    with TemporaryDirectory() as folder:
        lake = lake_of(Path(folder), entities, statements)
        for chosen in (None, ["g"]):
            stated = [one for one in statements if chosen is None or one[0] in chosen]
            if chosen is not None and "g" not in {one[0] for one in statements}:
                continue
            base = LakeKnowledgeBase(lake, chosen)
            for entity in ("wd:Q1", "wd:Q2", "wd:Q3", "wd:Q8"):
                found = base.entity_triples(entity)
                listed = [(one.head, one.relation, one.tail, one.value) for one in found]
                assert sorted(listed, key=str) == sorted({one[1:] for one in stated if entity in one}, key=str)
                leaves = [one.head == entity for one in found]
                assert leaves == sorted(leaves, reverse=True)
