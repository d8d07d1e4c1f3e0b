"""Programs at random: whatever they do, they end within their budgets, and only the graph's answers are found."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.retrieval.search_code.values import MAX_TEXT
from kgrag_assets_tests.retrieval.search_code.small_graph import NAMES, STATEMENTS, SmallGraph, run

NAME = st.sampled_from(["a", "b", "c", "entity_info", "len", "__class__", "größe"])
TEXTS = st.sampled_from(["gender", "date of birth", "point in time", "wd:P569", "wd:Q0", "", "label", "facet of", "x"])
ATOMS = st.one_of(
    NAME,
    TEXTS.map(repr),
    st.integers(-3, 2000).map(str),
    st.sampled_from(["None", "True", "False", "[]", "()", "{}", "10**10**10", "1e999", "'a' * 10**9"]),
)


def _wider(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    fields = st.sampled_from(["label", "values", "aliases", "statements", "first", "id", "__dict__", "items", "get"])
    calls = st.sampled_from(["entity_info", "find_entity_or_value", "find_relationship", "len", "range", "eval", "a"])
    compared = st.sampled_from(["==", "!=", "<", ">=", "in", "not in", "is"])
    return st.one_of(
        st.tuples(parts, fields).map(lambda pair: f"({pair[0]}).{pair[1]}"),
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]})[{pair[1]}]"),
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]})[:{pair[1]}]"),
        st.tuples(calls, st.lists(parts, max_size=3)).map(lambda call: f"{call[0]}({', '.join(call[1])})"),
        st.lists(parts, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(TEXTS, parts), max_size=3).map(
            lambda items: "{" + ", ".join(f"{key!r}: {value}" for key, value in items) + "}"
        ),
        st.tuples(parts, compared, parts).map(lambda three: f"({three[0]}) {three[1]} ({three[2]})"),
        st.tuples(parts, st.sampled_from(["and", "or", "+", "**"]), parts).map(
            lambda three: f"({three[0]}) {three[1]} ({three[2]})"
        ),
        parts.map(lambda part: f"not ({part})"),
    )


EXPRESSIONS = st.recursive(ATOMS, _wider, max_leaves=8)


def _indented(block: str) -> str:
    return "\n".join(f"    {line}" for line in block.split("\n"))


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=4).map("\n".join)
    return st.one_of(
        several,
        st.tuples(NAME, EXPRESSIONS, several).map(lambda loop: f"for {loop[0]} in {loop[1]}:\n{_indented(loop[2])}"),
        st.tuples(EXPRESSIONS, several, several).map(
            lambda either: f"if {either[0]}:\n{_indented(either[1])}\nelse:\n{_indented(either[2])}"
        ),
    )


STATEMENT = st.one_of(
    st.tuples(NAME, EXPRESSIONS).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    EXPRESSIONS,
    st.sampled_from(["pass", "import os", "while True:\n    pass", "a = a"]),
)
# Without names of functions and what is out of the language, so that programs get far.
GOOD_STATEMENT = st.one_of(
    st.tuples(st.sampled_from("ab"), TEXTS, TEXTS).map(
        lambda three: f"{three[0]} = find_entity_or_value({three[1]!r}, {three[2]!r})"
    ),
    st.tuples(TEXTS, TEXTS).map(lambda pair: f"a = find_relationship({pair[0]!r}, {pair[1]!r})"),
    TEXTS.map(lambda name: f"b = entity_info({name!r})"),
    st.just("for c in range(30):\n    a = entity_info('gender')"),
    st.just("for c in [1, 2]:\n    for d in [entity_info('sex'), 'x', None]:\n        entity_info(d)"),
)
PROGRAMS = st.one_of(
    st.recursive(STATEMENT, _blocks, max_leaves=10),
    st.lists(GOOD_STATEMENT, max_size=12).map("\n".join),
    st.lists(st.one_of(GOOD_STATEMENT, STATEMENT), max_size=12).map("\n".join),
)


@settings(max_examples=400, deadline=None)
@given(PROGRAMS, st.integers(1, 60), st.integers(0, 8))
def test_any_program_ends_within_its_budgets(code: str, steps: int, calls: int) -> None:
    graph = SmallGraph()
    outcome, found = run(graph, code, steps=steps, calls=calls)
    assert outcome.steps <= steps
    assert found.calls <= calls
    assert "\n" not in outcome.error
    assert len(outcome.error) < 2 * MAX_TEXT
    # Only what the graph has said.
    for entity in found.entities:
        assert entity.info.label == NAMES[entity.info.entity_id][0]
        assert 0.0 <= entity.link <= 1.0
    for triple in found.statements:
        assert (triple.head, triple.relation, triple.tail, triple.value) in STATEMENTS
    labels = {label for label, _aliases, _about in NAMES.values()}
    assert not labels & set(found.unknown)
    if not found.calls:
        assert (graph.asked, found.entities, found.statements) == (0, (), ())


@settings(max_examples=200, deadline=None)
@given(PROGRAMS)
def test_a_program_comes_to_the_same_each_time(code: str) -> None:
    assert run(SmallGraph(), code) == run(SmallGraph(), code)


@settings(max_examples=150, deadline=None)
@given(PROGRAMS, st.integers(1, 40))
def test_a_smaller_budget_finds_the_beginning_of_what_a_larger_one_finds(code: str, steps: int) -> None:
    _outcome, few = run(SmallGraph(), code, steps=steps)
    _outcome, all_found = run(SmallGraph(), code, steps=steps + 20)
    assert {entity.info.entity_id for entity in few.entities} <= {e.info.entity_id for e in all_found.entities}
    assert list(few.statements) == list(all_found.statements)[: len(few.statements)]
    assert list(few.unknown) == list(all_found.unknown)[: len(few.unknown)]


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_ends(text: str) -> None:
    outcome, _found = run(SmallGraph(), text)
    assert outcome.steps <= 200
