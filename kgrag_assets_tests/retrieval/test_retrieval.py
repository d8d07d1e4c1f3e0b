"""The two methods on a small graph, and that only what an edit touches is retrieved again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from kgrag_assets.retrieval.assemble import RetrievedRows, retrieve_task
from kgrag_assets.retrieval.entity_paths import HOP_DECAY, EntityPaths
from kgrag_assets.retrieval.protocol import RetrievalError
from kgrag_assets.retrieval.seeds import PART_SUPPORT, RELATION_BONUS, WHOLE_PHRASE, EntityLinking
from kgrag_assets.retrieval.support import UNSUPPORTED_LOSS, AttributeWords, content_words, is_telling, support_of
from kgrag_assets.retrieval.vector_triples import BOTH_SIDED, ONE_SIDED, VectorTriples
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.retrieval.small_world import (
    ListedSearch,
    Statement,
    TriplesOfRows,
    WordLinker,
    attributes,
    candidates,
    embeddings,
    entities,
    index_of,
    names_of,
    triples,
    vector,
)

NAMES = {
    "wd:P569": ("date of birth", "date on which the subject was born"),
    "wd:Q47223": ("birthday", "anniversary of birth"),
    "wd:Q205892": ("calendar date", ""),
    "wd:Q6581072": ("female", ""),
    "wd:Q48277": ("gender", "range of characteristics"),
    "wd:Q8": ("lonely", ""),
    "wd:P31": ("instance of", ""),
    "wd:P279": ("subclass of", ""),
}
STATEMENTS: list[Statement] = [
    ("wd:Q47223", "wd:P279", "wd:Q205892"),
    ("wd:P569", "wd:P31", "wd:Q205892"),
    ("wd:Q6581072", "wd:P31", "wd:Q48277"),
]
COLUMNS = {
    ("source", "pat.birth_dt"): "birth date",
    ("source", "pat.sex"): "sex of the patient",
    ("source", "pat.misc"): "remarks",
    ("target", "person.dob"): "date of birth",
    ("target", "person.gender"): "gender",
    ("target", "person.other"): "anything",
}
VECTORS = {
    "birth_dt": vector(a=0.9, b=0.3),
    "dob": vector(a=0.8, b=0.5),
    "sex": vector(c=0.9),
    "gender": vector(d=0.9),
    "misc": vector(),
    "other": vector(e=0.9),
}
ENTITY_VECTORS = {
    "wd:P569": vector(a=1.0),
    "wd:Q47223": vector(b=1.0),
    "wd:Q6581072": vector(c=1.0),
    "wd:Q48277": vector(d=1.0),
    "wd:Q8": vector(e=1.0),
}
SETTINGS = RetrievalSettings(min_cosine=0.45, entities_per_attribute=2)


EVERY_NAME = " ".join(label for label, _ in NAMES.values())


def own_words(attribute: Attribute) -> AttributeWords:
    """Take the description as the one phrase; every name is supported, so that scores are plain cosines."""
    return AttributeWords((attribute.column_description,), content_words(EVERY_NAME))


@dataclass
class World:
    """Everything that a retrieval reads; a test changes one part of it."""

    schema: pl.DataFrame
    vectors: dict[str, np.ndarray]
    settings: RetrievalSettings = SETTINGS
    graph_version: str = "g1"
    index_version: str = "1"
    links: dict[str, str] | None = None
    words: Callable[[Attribute], AttributeWords] | None = None

    def search(self) -> ListedSearch:
        return ListedSearch(STATEMENTS, self.settings.max_hops)

    def attribute_vectors(self) -> AttributeVectors:
        return AttributeVectors(embeddings(self.schema, self.vectors))

    def linking(self) -> EntityLinking:
        return EntityLinking(
            vectors=self.attribute_vectors(),
            entity_index=index_of(ENTITY_VECTORS, self.index_version),
            linker=WordLinker(self.links or {}),
            names=names_of(entities(NAMES), triples(STATEMENTS, NAMES)),
            settings=self.settings,
            words=own_words if self.words is None else self.words,
        )

    def paths(self, search: ListedSearch | None = None) -> EntityPaths:
        return EntityPaths(
            linking=self.linking(),
            search=self.search() if search is None else search,
            names=names_of(entities(NAMES), triples(STATEMENTS, NAMES)),
            settings=self.settings,
            graph_version=self.graph_version,
        )

    def triples(self) -> VectorTriples:
        table = triples(STATEMENTS, NAMES)
        ids = table["triple_id"].to_list()
        near = dict(zip(ids, [vector(b=0.8, a=0.6), vector(a=1.0), vector(d=1.0)], strict=True))
        return VectorTriples(
            vectors=self.attribute_vectors(),
            triple_index=index_of(near, self.index_version),
            triples=TriplesOfRows(table),
            settings=self.settings,
            words=own_words if self.words is None else self.words,
        )

    def retrieve(self, existing: pl.DataFrame | None = None) -> RetrievedRows:
        return retrieve_task(
            self.schema,
            candidates(self.schema),
            [self.triples(), self.paths()],
            RETRIEVED_SUBGRAPHS.empty() if existing is None else existing,
        )


def world() -> World:
    return World(attributes(COLUMNS), dict(VECTORS))


def row(rows: RetrievedRows, method: str, source: str, target: str) -> dict[str, object]:
    here = (pl.col("method") == method) & (pl.col("source_column") == source) & (pl.col("target_column") == target)
    return rows.frame.filter(here).row(0, named=True)


def facts(rows: RetrievedRows, method: str, source: str, target: str) -> list[dict[str, object]]:
    found = row(rows, method, source, target)["facts"]
    assert isinstance(found, list)
    return found


def test_a_shared_entity_comes_first_and_names_itself() -> None:
    found = facts(world().retrieve(), "entity_paths", "birth_dt", "dob")
    assert found[0]["kind"] == "shared_entity"
    assert found[0]["text"] == "date of birth (P569): date on which the subject was born"
    assert found[0]["nodes"] == ["wd:P569"]
    assert found[0]["edges"] == []
    assert found[0]["score"] == pytest.approx((0.9 + 0.8) / 2 * RELATION_BONUS, abs=1e-5)


def test_paths_keep_the_true_direction_of_their_statements() -> None:
    found = facts(world().retrieve(), "entity_paths", "birth_dt", "dob")
    path = next(fact for fact in found if fact["kind"] == "path")
    assert path["text"] == "date of birth —instance of→ calendar date ←subclass of— birthday"
    assert path["nodes"] == ["wd:P569", "wd:Q205892", "wd:Q47223"]
    edges = path["edges"]
    assert isinstance(edges, list)
    assert [(edge["head"], edge["relation"], edge["tail"]) for edge in edges] == [STATEMENTS[1], STATEMENTS[0]]
    assert edges[1]["relation_label"] == "subclass of"
    assert path["score"] == pytest.approx((0.9 * RELATION_BONUS + 0.5) / 2 * HOP_DECAY**2, abs=1e-5)


def test_one_hop_between_the_seeds_of_the_two_sides() -> None:
    found = facts(world().retrieve(), "entity_paths", "sex", "gender")
    assert [fact["text"] for fact in found] == ["female —instance of→ gender"]


def test_states_are_explicit() -> None:
    rows = world().retrieve()
    assert row(rows, "entity_paths", "birth_dt", "dob")["status"] == "found"
    assert row(rows, "entity_paths", "sex", "other")["status"] == "no_path"
    assert row(rows, "vector_triples", "misc", "other")["status"] == "no_seed"
    assert row(rows, "entity_paths", "misc", "other")["status"] == "no_path"
    assert rows.frame.height == 2 * 9
    empty = world()
    empty.vectors["other"] = vector()
    assert row(empty.retrieve(), "entity_paths", "misc", "other")["status"] == "no_seed"
    early = world().paths(ListedSearch(STATEMENTS, exhausted=True))
    cut = retrieve_task(world().schema, candidates(world().schema), [early], RETRIEVED_SUBGRAPHS.empty())
    assert row(cut, "entity_paths", "birth_dt", "dob")["status"] == "cut"
    assert row(cut, "entity_paths", "sex", "other")["status"] == "no_path"


def test_a_single_seed_gives_its_neighbourhood_at_a_discount() -> None:
    found = facts(world().retrieve(), "entity_paths", "misc", "gender")
    assert [fact["text"] for fact in found] == ["gender ←instance of— female"]
    assert found[0]["score"] == pytest.approx(0.9 * HOP_DECAY * ONE_SIDED, abs=1e-5)


def test_a_lexical_link_lifts_an_entity_and_is_named_among_the_seeds() -> None:
    linked = world()
    linked.links = {"remarks": "wd:Q8", "anything": "wd:Q8"}
    found = row(linked.retrieve(), "entity_paths", "misc", "other")
    seeds = found["seeds"]
    assert isinstance(seeds, list)
    assert [(seed["side"], seed["rank"], seed["label"]) for seed in seeds] == [
        ("source", 1, "lonely"),
        ("target", 1, "lonely"),
    ]
    # By words alone, and by words and vector.
    assert seeds[0]["score"] == pytest.approx(WHOLE_PHRASE)
    assert seeds[1]["score"] == pytest.approx(0.9)


def test_triples_near_both_stand_before_those_near_one_with_the_documented_scores() -> None:
    rows = world().retrieve()
    found = facts(rows, "vector_triples", "birth_dt", "dob")
    assert [fact["text"] for fact in found] == [
        "date of birth —instance of→ calendar date",
        "birthday —subclass of→ calendar date",
    ]
    assert found[0]["score"] == pytest.approx((0.9 + 0.8) / 2 * BOTH_SIDED, abs=1e-5)
    one_sided = facts(rows, "vector_triples", "birth_dt", "gender")
    assert {fact["text"]: fact["score"] for fact in one_sided}["female —instance of→ gender"] == pytest.approx(
        0.9 * ONE_SIDED, abs=1e-5
    )
    assert all(float(str(fact["score"])) < 0.45 for fact in one_sided)


def test_facts_beyond_the_limit_are_counted() -> None:
    few = world()
    few.settings = replace_settings(max_facts=1)
    rows = few.retrieve()
    assert len(facts(rows, "entity_paths", "birth_dt", "dob")) == 1
    assert row(rows, "entity_paths", "birth_dt", "dob")["facts_cut"] == 1
    assert row(rows, "vector_triples", "birth_dt", "dob")["facts_cut"] == 1


def replace_settings(**changed: object) -> RetrievalSettings:
    return RetrievalSettings.model_validate({**SETTINGS.model_dump(), **changed})


def test_each_pair_of_seeds_is_searched_once() -> None:
    search = ListedSearch(STATEMENTS)
    here = world()
    retrieve_task(here.schema, candidates(here.schema), [here.paths(search)], RETRIEVED_SUBGRAPHS.empty())
    assert len(search.asked) == len(set(search.asked)) == len({frozenset(pair) for pair in search.asked})


def test_a_second_run_retrieves_nothing() -> None:
    first = world().retrieve()
    RETRIEVED_SUBGRAPHS.conform(first.frame)
    again = world().retrieve(first.frame)
    assert (again.kept, again.computed, again.removed) == (18, 0, 0)
    assert set(again.frame["row_key"]) == set(first.frame["row_key"])


def test_an_edited_description_touches_only_its_own_pairs() -> None:
    first = world().retrieve()
    edited = world()
    edited.schema = attributes({**COLUMNS, ("source", "pat.sex"): "administrative sex"})
    second = edited.retrieve(first.frame)
    assert (second.kept, second.computed, second.removed) == (12, 6, 6)
    new = second.frame.join(first.frame, on="row_key", how="anti")
    assert new["source_column"].unique().to_list() == ["sex"]


def test_a_removed_column_is_gone() -> None:
    first = world().retrieve()
    fewer = world()
    fewer.schema = attributes({key: value for key, value in COLUMNS.items() if key[1] != "person.other"})
    second = fewer.retrieve(first.frame)
    assert (second.kept, second.computed, second.removed) == (12, 0, 6)


@pytest.mark.parametrize(
    ("change", "kept"),
    [({"graph_version": "g2"}, 9), ({"index_version": "2"}, 9), ({"settings": replace_settings(max_facts=7)}, 0)],
)
def test_another_graph_or_setting_retrieves_again(change: dict[str, object], kept: int) -> None:
    first = world().retrieve()
    second = replace(world(), **change).retrieve(first.frame)
    assert second.kept == kept
    assert second.computed == 18 - kept


def test_what_does_not_go_together_is_refused() -> None:
    here = world()
    other = embeddings(here.schema, here.vectors).with_columns(pl.lit("other@2").alias("model_id"))
    with pytest.raises(RetrievalError, match=r"other@2, those of entity_index of fake@1"):
        AttributeVectors(other).refuse_other_model(index_of(ENTITY_VECTORS), "entity_index")
    few = AttributeVectors(embeddings(here.schema, here.vectors).head(1))
    with pytest.raises(RetrievalError, match="bring attribute_embeddings up to date"):
        few.key("unknown", "name")
    pairs = candidates(here.schema)
    without = here.schema.filter(pl.col("column_name") != "dob")
    with pytest.raises(RetrievalError, match="bring candidate_pairs up to date"):
        retrieve_task(without, pairs, [here.triples()], RETRIEVED_SUBGRAPHS.empty())


def test_an_empty_graph_and_no_candidates_are_legal() -> None:
    here = world()
    nothing = VectorTriples(
        vectors=here.attribute_vectors(),
        triple_index=index_of({}),
        triples=TriplesOfRows(triples([], NAMES)),
        settings=SETTINGS,
    )
    rows = retrieve_task(here.schema, candidates(here.schema), [nothing], RETRIEVED_SUBGRAPHS.empty())
    assert rows.frame["status"].unique().to_list() == ["no_seed"]
    no_pairs = retrieve_task(here.schema, candidates(here.schema).clear(), [nothing], rows.frame)
    assert (no_pairs.frame.height, no_pairs.removed) == (0, 9)


def test_names_fall_back_to_the_id_and_prefer_the_first_graph() -> None:
    table = entities({"wd:Q1": ("one", "")})
    second = table.with_columns(pl.lit("h").alias("graph"), pl.lit("eins").alias("label"))
    names = names_of(pl.concat([second, table]), triples(STATEMENTS, NAMES))
    found = names.of(["wd:Q1", "wd:Q99", "wd:P31", "wd:Q48277"])
    assert found["wd:Q1"].label == "one"
    assert found["wd:Q99"].label == "wd:Q99"
    assert (found["wd:P31"].label, found["wd:P31"].kind) == ("instance of", "relation")
    # Named by the statements that speak of it.
    assert (found["wd:Q48277"].label, found["wd:Q48277"].kind) == ("gender", "entity")


def test_only_triples_that_were_found_are_looked_up_and_once_for_all_attributes() -> None:
    here = world()
    table = triples(STATEMENTS, NAMES)
    near = dict(zip(table["triple_id"], [vector(b=0.8, a=0.6), vector(a=1.0), vector(g=1.0)], strict=True))
    looked_up = TriplesOfRows(table)
    method = VectorTriples(
        vectors=here.attribute_vectors(), triple_index=index_of(near), triples=looked_up, settings=SETTINGS
    )
    for _ in range(2):
        retrieve_task(here.schema, candidates(here.schema), [method], RETRIEVED_SUBGRAPHS.empty())
    assert looked_up.asked[0] == set(table["triple_id"][:2])
    assert not any(looked_up.asked[1:])


def test_progress_adds_up() -> None:
    told: list[int] = []
    here = world()
    retrieve_task(
        here.schema, candidates(here.schema), [here.triples()], RETRIEVED_SUBGRAPHS.empty(), lambda _total: told.append
    )
    assert sum(told) == 9


def test_links_are_of_each_attribute_alone() -> None:
    here = world()
    linking = here.linking()
    one = Attribute(here.schema["attribute_id"][0], "source", "pat", "birth_dt", "", "unknown", "", "birth date")
    alone = linking.link([one])
    together = linking.link([one, one])
    assert alone == together
    assert [entry.entity_id for entry in alone[one.attribute_id]] == ["wd:P569"]


def test_a_name_among_the_words_of_an_attribute_lifts_an_entity() -> None:
    here = world()
    here.words = lambda _attribute: AttributeWords(("sex of patient",), content_words("sex of patient"))
    here.links = {"sex": "wd:Q48277", "patient": "wd:Q8"}
    here.vectors["sex"] = vector(c=0.5, d=0.5, e=0.5)
    found = row(here.retrieve(), "entity_paths", "sex", "other")["seeds"]
    assert isinstance(found, list)
    scores = {seed["label"]: seed["score"] for seed in found if seed["side"] == "source"}
    # Found by a part of the phrase: support; "female" has none of the words. Two are kept.
    linked = 0.5 * (1 - UNSUPPORTED_LOSS * (1 - PART_SUPPORT))
    assert scores == {"gender": pytest.approx(linked, abs=1e-5), "lonely": pytest.approx(linked, abs=1e-5)}


def test_support_counts_telling_words_only() -> None:
    words = content_words("beneficiary birth dates, a code")
    assert support_of("date of birth", words) == 1.0
    assert support_of("date of death", words) == 0.5
    assert support_of("birth code ID", words) == 1.0
    assert support_of("unique identifier", content_words("unique identifier")) == 0.0
    assert not is_telling("unique ID")
    assert is_telling("person identifier")
    assert support_of("", words) == 0.0


def test_an_entity_named_by_a_generic_word_is_no_seed() -> None:
    here = world()
    generic = {**NAMES, "wd:Q8": ("unique identifier", "")}
    linking = EntityLinking(
        vectors=here.attribute_vectors(),
        entity_index=index_of(ENTITY_VECTORS),
        linker=WordLinker({}),
        names=names_of(entities(generic), triples(STATEMENTS, NAMES)),
        settings=SETTINGS,
        words=own_words,
    )
    other = here.schema.filter(pl.col("column_name") == "other")
    linked = linking.link(attributes_of(other).values())
    assert linked[other["attribute_id"][0]] == []


def test_an_entity_near_to_both_is_shared_though_others_are_nearer() -> None:
    here = world()
    here.settings = replace_settings(entities_per_attribute=1)
    here.vectors["dob"] = vector(a=0.6, b=0.7)
    found = facts(here.retrieve(), "entity_paths", "birth_dt", "dob")
    assert found[0]["text"] == "date of birth (P569): date on which the subject was born"
    assert found[0]["score"] == pytest.approx((0.9 + 0.6) / 2 * RELATION_BONUS, abs=1e-5)
