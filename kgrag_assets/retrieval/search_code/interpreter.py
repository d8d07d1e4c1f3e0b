"""The interpreter of search programs: a few statements of Python's grammar over ``expressions``, and nothing else.

The language: ``name = value``; ``for name in list``; ``if``, ``elif``, ``else``; ``pass``; an expression alone.
Expressions are texts, numbers, ``True``, ``False``, ``None``, lists, tuples, dictionaries with texts as keys, names,
the comparisons, ``in``, ``and``, ``or``, ``not``, an index or a slice of a list, a named field of a record, and calls
of the three questions, of ``range(n)`` and of ``len(list)``. There is no arithmetic: nothing can grow.

A program's text is never given to ``eval``, ``exec`` or ``compile``. Fields of records are looked up among their own
names; no attribute of a Python object can be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from kgrag_assets.retrieval.search_code.budget import Steps
from kgrag_assets.retrieval.search_code.comparing import kind_of
from kgrag_assets.retrieval.search_code.errors import OverBudgetError, ProgramError
from kgrag_assets.retrieval.search_code.expressions import Expressions, Functions, not_in_language
from kgrag_assets.retrieval.search_code.program_text import Program
from kgrag_assets.retrieval.search_code.values import Listing


@dataclass(frozen=True)
class Outcome:
    """How a program ended: after how many steps, with which error (empty for none), and whether at its budget."""

    steps: int
    error: str
    over_budget: bool


def run_program(program: Program, functions: Functions, max_steps: int) -> Outcome:
    """Run a program until it ends, goes wrong, or has taken ``max_steps`` steps.

    What the functions found before an error stays found. Text that could not be read is an error after all that
    could.
    """
    steps = Steps(max_steps)
    try:
        _Run(functions, steps).all_of(program.statements)
    except ProgramError as error:
        return Outcome(steps.taken, str(error), isinstance(error, OverBudgetError))
    return Outcome(steps.taken, program.error, over_budget=False)


class _Run:
    def __init__(self, functions: Functions, steps: Steps) -> None:
        self._expressions = Expressions(functions, steps)
        self._steps = steps

    def all_of(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._steps.step(statement.lineno)
            self._do(statement)

    def _do(self, statement: ast.stmt) -> None:
        value_of = self._expressions.value
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                self._expressions.assign(target, value_of(value))
            case ast.Expr(value=value):
                value_of(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.all_of(body if value_of(test) else orelse)
            case ast.For(target=ast.Name() as target, iter=over, body=body, orelse=[]):
                self._loop(target, over, body)
            case ast.Pass():
                pass
            case ast.Assign():
                raise ProgramError(statement.lineno, "a value can be assigned to one name only")
            case ast.For(orelse=[]):
                raise ProgramError(statement.lineno, "a loop has one name")
            case _:
                raise not_in_language(statement)

    def _loop(self, target: ast.Name, over: ast.expr, body: Sequence[ast.stmt]) -> None:
        items = self._expressions.value(over)
        if not isinstance(items, Listing):
            raise ProgramError(over.lineno, f"a loop goes over a list, not over {kind_of(items)}")
        for item in items.items:
            self._steps.step(target.lineno)
            self._expressions.assign(target, item)
            self.all_of(body)
