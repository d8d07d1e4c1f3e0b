"""The interpreter: what is in the language works as in Python, nothing else does, and budgets hold."""

from __future__ import annotations

import pytest

from kgrag_assets_tests.retrieval.search_code.small_graph import SmallGraph, run

# Each reads 'entity_info("gender")' in some way.
SAME = [
    'entity_info("gender")',
    'entity_info(entity="gender")',
    'name = "gender"\nentity_info(name)',
    'for name in ["gender"]:\n    entity_info(name)',
    'for name in ("a", "gender")[1:]:\n    entity_info(name)',
    'names = {"one": "gender"}\nentity_info(names["one"])',
    'names = {"one": "gender"}\nentity_info(names.one)',
    'if 1 < 2 <= 2 and not "x" in "abc":\n    entity_info("gender")\nelse:\n    entity_info("person")',
    'if len(["a", "b"]) != 2 or None:\n    pass\nelif "a" in ["a"]:\n    entity_info("gender")',
    'for place in range(3):\n    if place == 2:\n        entity_info(["x", "y", "gender"][place])',
    'entity_info(["x", "gender"][-1])',
    'entity_info(entity_info("gender").label)',
    'info = entity_info("sex")\nif info and info.label == "gender" and "sex" in info.aliases:\n    entity_info(info)',
    'if entity_info("no such thing"):\n    entity_info("person")\nelse:\n    entity_info("gender")',
    'entity_info(None or "gender")',
    'if ("a", 1) == ["a", 1] and "b" > "a" and 2.5 > 2 and None is None and "a" is not None:\n    entity_info("sex")',
    'if "one" in {"one": 1} and "two" not in {"one": 1}:\n    entity_info("gender")',
    '"""A comment."""\n# another\nentity_info("gender")',
]


@pytest.mark.parametrize("code", SAME)
def test_what_is_in_the_language_works(code: str, graph: SmallGraph) -> None:
    outcome, found = run(graph, code)
    assert outcome.error == ""
    assert [entity.info.entity_id for entity in found.entities] == ["wd:Q300"]


# What is refused, each with a part of what is said.
REFUSED = [
    ("import os", "import is not part of the language"),
    ("from os import path", "import is not"),
    ('__import__("os")', "__import__ is no function here"),
    ('eval("1")', "eval is no function here"),
    ('exec("1")', "exec is no function here"),
    ('open("/etc/passwd")', "open is no function here"),
    ('print("x")', "print is no function here"),
    ("__builtins__", "__builtins__ is not known"),
    ("().__class__", "a list has no field __class__"),
    ("().__class__.__bases__[0].__subclasses__()", "only a function of the language can be called"),
    ('x = entity_info("gender").__class__', "an entity has no field __class__"),
    ('x = entity_info("gender").__dict__["found"]', "an entity has no field __dict__"),
    ('x = entity_info("gender").get', "an entity has no field get"),
    ('x = entity_info("gender").fields', "an entity has no field fields"),
    ('entity_info("gender").get("id")', "only a function of the language can be called"),
    ('x = "a".upper()', "only a function of the language can be called"),
    ('x = "a".format', "a text has no field format"),
    ("x = []\nx.append(1)", "only a function of the language can be called"),
    ("x = entity_info.__globals__", "entity_info is a function: call it"),
    ("x = entity_info", "entity_info is a function: call it"),
    ("entity_info = 1", "entity_info is a function and cannot be assigned to"),
    ("for len in [1]:\n    pass", "len is a function and cannot be assigned to"),
    ("(lambda: 1)()", "only a function of the language can be called"),
    ("x = lambda: 1", "lambda is not"),
    ("def f():\n    f()\nf()", "def is not"),
    ("async def f():\n    pass", "async def is not"),
    ("class A:\n    pass", "class is not"),
    ("while True:\n    pass", "while is not"),
    ("for x in [1]:\n    break", "break is not"),
    ("for x in [1]:\n    pass\nelse:\n    pass", "for is not"),
    ("for x, y in [[1, 2]]:\n    pass", "a loop has one name"),
    ("for x in 'text':\n    pass", "a loop goes over a list, not over a text"),
    ("for x in {'a': 1}:\n    pass", "a loop goes over a list, not over a dictionary"),
    ("try:\n    x\nexcept NameError:\n    pass", "try is not"),
    ("with x:\n    pass", "with is not"),
    ("x = 1\nx += 1", "line 3: an assignment with an operator is not"),
    ("x: int = 1", "annassign is not"),
    ("x, y = 1, 2", "assigned to one name only"),
    ("x = y = 2", "assigned to one name only"),
    ("x.a = 2", "assigned to one name only"),
    ("x[0] = 2", "assigned to one name only"),
    ("del x", "delete is not"),
    ("global x", "global is not"),
    ("return 1", "return is not"),
    ("raise ValueError", "raise is not"),
    ("assert x", "assert is not"),
    ("match 1:\n    case 1:\n        pass", "match is not"),
    ("x = 10**10**10", "arithmetic is not"),
    ("x = 'a' * 1000000000", "arithmetic is not"),
    ("x = [0] * 1000000000", "arithmetic is not"),
    ("x = 'a' + 'b'", "arithmetic is not"),
    ("x = '%s' % 1", "arithmetic is not"),
    ("x = ~1", "arithmetic is not"),
    ("x = [y for y in [1]]", "a comprehension is not"),
    ("x = {y for y in [1]}", "a comprehension is not"),
    ("x = {1, 2}", "set is not"),
    ("x = f'{1}'", "a formatted text is not"),
    ("x = 1 if 2 else 3", "an if inside an expression is not"),
    ("x = (y := 1)", "an assignment inside an expression is not"),
    ("x = [*[1]]", "a star is not"),
    ("x = {**{}}", "the keys of a dictionary are texts"),
    ("x = {1: 2}", "the keys of a dictionary are texts"),
    ("entity_info(*['a'])", "a star is not"),
    ("entity_info(**{'entity': 'a'})", "entity_info takes entity"),
    ("entity_info()", "entity_info takes entity"),
    ("entity_info('a', 'b')", "entity_info takes entity"),
    ("entity_info('a', entity='b')", "entity_info takes entity"),
    ("find_relationship('a')", "find_relationship takes first, second"),
    ("entity_info(1)", "entity_info takes names or ids"),
    ("entity_info(['a'])", "entity_info takes names or ids"),
    ("entity_info(True)", "entity_info takes names or ids"),
    ("await x", "await is not"),
    ("yield 1", "yield is not"),
    ("x = 1j", "complex is not"),
    ("x = b'a'", "bytes is not"),
    ("x = ...", "... is not"),
    ("x = 99999999999", "a number is too large"),
    ("x = 'a'[0]", "a text has no item at a number"),
    ("x = [1][True]", "a list has no item at True"),
    ("x = [1]['a']", "a list has no item at a text"),
    ("x = [1][1]", "the list has 1 items and none at 1"),
    ("x = [1][-2]", "the list has 1 items and none at -2"),
    ("x = [1][::-1]", "a slice is one of a list"),
    ("x = 'abc'[0:1]", "a slice is one of a list"),
    ("x = [1]['a':]", "the ends of a slice are whole numbers"),
    ("x = {'a': 1}.b", "a dictionary has no field b; it has a"),
    ("x = None.label", "None has no field label"),
    ("x = 'a' < 1", "a text is neither more nor less than a number"),
    ("x = None < None", "None is neither more nor less than None"),
    ("x = 1 in 'abc'", "a number cannot be in a text"),
    ("x = 1 in 2", "a number cannot be in a number"),
    ("x = -'a'", "there is no negative of a text"),
    ("x = -True", "there is no negative of True"),
    ("x = len(1)", "a number has no length"),
    ("x = len()", "len takes one value"),
    ("x = range(1, 2)", "range takes one value"),
    ("x = range('a')", "range takes a whole number"),
    ("x = range(1000000000)", "range takes a whole number of at most"),
    ("x = 'a\u0430' \nx.\u0430", "a text has no field"),
    ("\u0435ntity_info('a')", "is no function here"),
    ("x = '" + "a" * 600 + "'", "a text of 600 characters is too long"),
]


@pytest.mark.parametrize(("code", "said"), REFUSED, ids=[code[:40] for code, _said in REFUSED])
def test_what_is_not_in_the_language_is_refused(code: str, said: str, graph: SmallGraph) -> None:
    before = 'entity_info("date of birth")\n'
    outcome, found = run(graph, before + code)
    assert said in outcome.error
    assert outcome.error.startswith("line ")
    assert not outcome.over_budget
    # What was found before stays found.
    assert found.entities[0].info.entity_id == "wd:P569"


def test_the_error_names_its_line(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'entity_info("gender")\n\nx = nothing\nentity_info("person")')
    assert outcome.error == "line 3: nothing is not known"
    assert [entity.info.label for entity in found.entities] == ["gender"]


def test_a_branch_that_is_not_taken_is_not_looked_at(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'if False:\n    import os\nentity_info("gender")')
    assert (outcome.error, found.calls) == ("", 1)


def test_and_or_take_no_more_than_they_need(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'True or entity_info("gender")\nFalse and entity_info("gender")\n')
    assert (outcome.error, found.calls) == ("", 0)
    outcome, found = run(graph, 'False or entity_info("gender")\nTrue and entity_info("person")\n')
    assert (outcome.error, found.calls) == ("", 2)


@pytest.mark.parametrize(
    "code",
    [
        "for a in range(1000):\n    for b in range(1000):\n        x = 1",
        "x = 1\n" * 201,
        "for a in range(199):\n    x = [[1], [2], [3]]",
        "x = range(1000)\n" * 30,
        "y = range(1000)\n" + "x = y[:]\n" * 30,
        "y = range(1000)\n" + "x = y == y\n" * 30,
        "y = range(1000)\n" + "x = 5000 in y\n" * 30,
    ],
)
def test_steps_are_counted(code: str, graph: SmallGraph) -> None:
    outcome, _found = run(graph, code, steps=200)
    assert outcome.steps == 200
    assert outcome.over_budget
    assert outcome.error.endswith("stopped after 200 steps")


def test_as_many_steps_as_there_are_may_be_taken(graph: SmallGraph) -> None:
    outcome, _found = run(graph, "for a in range(3):\n    x = a", steps=7)
    assert (outcome.steps, outcome.error) == (7, "")
    assert run(graph, "for a in range(3):\n    x = a", steps=6)[0].over_budget


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = [1]\n" + "x = [x]\n" * 20, "deep"),
        ("for a in range(50):\n    x = {'a': [a]}\nx = [x, x]\n" + "x = [x, x, x, x, x, x, x, x, x]\n" * 6, "large"),
        ("x = [" + "range(500), " * 50 + "]", "large"),
        ("x = 1\nfor a in range(150):\n    x = [x, x]", "deep"),
    ],
)
def test_values_do_not_grow(code: str, said: str, graph: SmallGraph) -> None:
    outcome, _found = run(graph, code, steps=1000)
    assert said in outcome.error


def test_questions_are_counted(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'for a in range(100):\n    entity_info("gender")', calls=5)
    assert found.calls == 5
    assert outcome.over_budget
    assert outcome.error == "line 2: stopped after 5 questions"
    assert [entity.info.label for entity in found.entities] == ["gender"]
    assert run(graph, 'for a in range(5):\n    entity_info("gender")', calls=5)[0].error == ""


def test_what_could_not_be_read_is_an_error_after_all_that_could(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'entity_info("gender")\nentity_info("per')
    assert outcome.error.startswith("line 2: unterminated string")
    assert found.calls == 1
    outcome, _found = run(graph, 'entity_info("gender")\nnothing\nentity_info("per')
    assert outcome.error == "line 2: nothing is not known"


def test_names_of_other_scripts_and_invisible_characters_are_names(graph: SmallGraph) -> None:
    outcome, found = run(graph, 'größe = "gen\u200bder"\nentity_info(größe)\nentity_info("\\ud800gender\\n")')
    assert outcome.error == ""
    assert [entity.info.label for entity in found.entities] == ["gender"]
    assert found.unknown == ()
