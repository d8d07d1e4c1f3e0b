"""From a model's text to the statements of a program: finding the code, and reading it without running anything."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from dataclasses import dataclass

from kgrag_assets.models.prompt_text import shown
from kgrag_assets.retrieval.search_code.errors import ProgramError
from kgrag_assets.retrieval.search_code.questions import PARAMETERS

# Python's parser is given no more than this: deeply nested text can bring it to its limits.
MAX_CHARACTERS = 6000
MAX_NODES = 2500
# Levels of the syntax tree; a call inside an index inside a loop inside an if has some ten.
MAX_LEVELS = 40
# A text that does not parse loses its last lines this often.
MAX_ATTEMPTS = 12

_LINE_END = re.compile(r"\r\n|\r|\n")
_FENCE = "```"
# What reasoning models write before their answer.
_THOUGHT_END = "</think>"


@dataclass(frozen=True)
class Program:
    """The statements that could be read, and what is wrong with the text after them; empty for nothing."""

    statements: tuple[ast.stmt, ...]
    error: str = ""


def code_in(answer: str) -> str:
    """Return the code of a model's answer: its first fenced block that asks a question, or all of it.

    A block that does not end, as in an answer that was cut, reaches to the end of the text.
    """
    told = answer.rpartition(_THOUGHT_END)[2]
    blocks: list[list[str]] = []
    inside = False
    for line in _LINE_END.split(told):
        if line.lstrip().startswith(_FENCE):
            within = line.strip().removeprefix(_FENCE)
            if within.endswith(_FENCE) and not inside:
                blocks.append([within.removesuffix(_FENCE)])
                continue
            inside = not inside
            if inside:
                blocks.append([])
        elif inside:
            blocks[-1].append(line)
    texts = ["\n".join(block) for block in blocks]
    asking = [block for block in texts if any(f"{name}(" in block for name in PARAMETERS)]
    return textwrap.dedent(next(iter(asking or texts), told)).strip("\n")


def read_program(code: str) -> Program:
    """Read the statements of a program by Python's grammar; nothing is compiled or run.

    Where the text does not parse, as where an answer was cut, the lines before that place are a program still.
    Whether the statements are in the language is decided when they are reached (``interpreter``).
    """
    if len(code) > MAX_CHARACTERS:
        return Program((), f"a program of {len(code)} characters is too long: at most {MAX_CHARACTERS}")
    lines = _LINE_END.split(code)
    end, problem = len(lines), ""
    for _ in range(MAX_ATTEMPTS):
        try:
            module = _parsed("\n".join(lines[:end]))
        except SyntaxError as error:
            at = min(error.lineno or end, end)
            problem = problem or f"line {at}: {shown(str(error.msg), 100)}"
            end = at - 1
            if end < 1:
                break
        # Null bytes, lone surrogates; brackets or operators nested beyond what Python's parser takes.
        except (ValueError, MemoryError, RecursionError):
            return Program((), "the text cannot be read as a program")
        else:
            return _checked(module, problem)
    return Program((), problem)


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings():
        # Such as "\d" in a text: no concern of whoever runs this.
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _checked(module: ast.Module, problem: str) -> Program:
    """Refuse a tree that is too large or too deep to be walked."""
    nodes = 0
    level: list[ast.AST] = [module]
    for _ in range(MAX_LEVELS):
        nodes += len(level)
        if nodes > MAX_NODES:
            return Program((), f"a program of more than {MAX_NODES} parts is too long")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return Program(tuple(module.body), problem)
    return Program((), str(ProgramError(getattr(level[0], "lineno", 0), f"nested more than {MAX_LEVELS} deep")))
