"""From a model's text to a program: where the code is, what of it can be read, and that nothing breaks the reader."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.retrieval.search_code.program_text import (
    MAX_ATTEMPTS,
    MAX_CHARACTERS,
    MAX_NODES,
    code_in,
    read_program,
)

CODE = 'entity_info("pain")'


@pytest.mark.parametrize(
    "answer",
    [
        CODE,
        f"\n{CODE}\n\n",
        f"```\n{CODE}\n```",
        f"```python\n{CODE}\n```",
        f"Here is it:\r\n```py\r\n{CODE}\r\n```\r\nIt asks for pain.",
        f"  ```python\n  {CODE}\n  ```",
        f"```python\n{CODE}",
        f"```{CODE}```",
        f"Input:\n```\nsome text\n```\nProgram:\n```\n{CODE}\n```",
        f"<think>\n```\nentity_info(1)\n```\n</think>\n```\n{CODE}\n```",
    ],
)
def test_the_code_is_found(answer: str) -> None:
    assert code_in(answer) == CODE


def test_without_a_block_that_asks_the_first_one_is_the_code() -> None:
    assert code_in("a\n```\nx = 1\n```\n```\ny = 2\n```") == "x = 1"


def test_lines_before_one_that_cannot_be_read_are_a_program_still() -> None:
    program = read_program('x = 1\nif x:\n    y = 2\nfor z in [1, 2]:\n    entity_info("pa')
    assert [statement.lineno for statement in program.statements] == [1, 2]
    assert program.error.startswith("line 5: unterminated string")


def test_a_text_that_does_not_parse_is_cut_a_few_times_only() -> None:
    deeper = [" " * level + "if x:" for level in range(MAX_ATTEMPTS)]
    assert read_program("\n".join(["x = 1", *deeper])).statements == ()
    assert len(read_program("\n".join(["x = 1", *deeper[:-1]])).statements) == 1


@pytest.mark.parametrize(
    "code",
    [
        "(" * 150 + ")" * 150,
        "(" * 3000,
        "[" * 199 + "]" * 199,
        "-" * 5000 + "1",
        "not " * 1400 + "x",
        "x" + "[0]" * 1900,
        "x" + ".a" * 2900,
        "f" + "()" * 2900,
        "1" + "<1" * 2900,
        "[" + "1," * 2900 + "]",
        "1" * 5900,
        "0x" + "f" * 5900,
        "a\0b",
        "'\ud800'",
        "\ud800",
        "x = 1\n" * 1000,
        "\f\x0b\u2028",
        "if x: pass\n" + "".join(f"{' ' * level}if x:\n" for level in range(90)) + " " * 91 + "x",
    ],
)
def test_no_text_breaks_the_reader(code: str) -> None:
    program = read_program(code)
    assert len(code) <= MAX_CHARACTERS
    assert program.statements == () or len(code) < 4 * MAX_NODES


def test_too_long_a_text_is_not_read() -> None:
    program = read_program("x = 1\n" * MAX_CHARACTERS)
    assert program.statements == ()
    assert "too long" in program.error


def test_too_deep_a_text_says_where() -> None:
    program = read_program("x = 1\ny = " + "[" * 60 + "]" * 60)
    assert program.error == "line 2: nested more than 40 deep"


def test_the_reader_warns_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_program(r'x = "\d"').statements) == 1


@given(st.text(max_size=200))
def test_any_text_is_a_program_or_an_error(text: str) -> None:
    program = read_program(code_in(text))
    assert isinstance(program.statements, tuple)
    assert "\n" not in program.error


@given(st.lists(st.sampled_from([*"()[]{}:,.=<>'\"\\#`\n\t \r", "for ", "if ", "in ", "x", "1", "else", "```"])))
def test_any_pieces_of_code_are_a_program_or_an_error(pieces: list[str]) -> None:
    assert isinstance(read_program(code_in("".join(pieces))).error, str)
