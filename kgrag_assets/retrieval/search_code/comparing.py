"""Comparing the values of search programs, and what they are called in error messages."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeGuard

from kgrag_assets.retrieval.search_code.errors import ProgramError
from kgrag_assets.retrieval.search_code.values import Listing, Record, Value


def kind_of(value: Value) -> str:
    """Say what a value is."""
    if isinstance(value, Record):
        return value.what
    if isinstance(value, Listing):
        return "a list"
    if value is None or isinstance(value, bool):
        return str(value)
    return "a text" if isinstance(value, str) else "a number"


def is_whole(value: Value) -> TypeGuard[int]:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def holds(operator: ast.cmpop, one: Value, other: Value, line: int) -> bool:
    """Compare two values.

    Raises:
        ProgramError: they cannot be compared so.
    """
    match operator:
        case ast.Eq() | ast.Is():
            return one == other
        case ast.NotEq() | ast.IsNot():
            return one != other
        case ast.In():
            return _within(one, other, line)
        case ast.NotIn():
            return not _within(one, other, line)
        case _:
            return _ordered(operator, one, other, line)


def _within(one: Value, other: Value, line: int) -> bool:
    if isinstance(other, Listing):
        return one in other.items
    if isinstance(other, Record):
        return one in other.names
    if isinstance(other, str) and isinstance(one, str):
        return one in other
    raise ProgramError(line, f"{kind_of(one)} cannot be in {kind_of(other)}")


# Of the sign of a difference.
_ORDERS: Mapping[type[ast.cmpop], Callable[[int], bool]] = {
    ast.Lt: lambda sign: sign < 0,
    ast.LtE: lambda sign: sign <= 0,
    ast.Gt: lambda sign: sign > 0,
    ast.GtE: lambda sign: sign >= 0,
}


def _ordered(operator: ast.cmpop, one: Value, other: Value, line: int) -> bool:
    if isinstance(one, str) and isinstance(other, str):  # noqa: SIM114 - the types must be told apart
        sign = (one > other) - (one < other)
    elif isinstance(one, int | float) and isinstance(other, int | float):
        sign = (one > other) - (one < other)
    else:
        raise ProgramError(line, f"{kind_of(one)} is neither more nor less than {kind_of(other)}")
    return _ORDERS[type(operator)](sign)
