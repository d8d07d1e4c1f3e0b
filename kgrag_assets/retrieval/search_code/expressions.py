"""The expressions of search programs: what each comes to, and that there are no others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kgrag_assets.models.prompt_text import shown
from kgrag_assets.retrieval.search_code.budget import Steps
from kgrag_assets.retrieval.search_code.comparing import holds, is_whole, kind_of
from kgrag_assets.retrieval.search_code.errors import ProgramError
from kgrag_assets.retrieval.search_code.values import (
    MAX_ITEMS,
    MAX_NUMBER,
    MAX_TEXT,
    Listing,
    Record,
    Value,
    listing,
    record,
    size_of,
    text,
)

_SAID: Mapping[type[ast.AST], str] = {
    ast.BinOp: "arithmetic",
    ast.FunctionDef: "def",
    ast.AsyncFunctionDef: "async def",
    ast.ClassDef: "class",
    ast.ImportFrom: "import",
    ast.AugAssign: "an assignment with an operator",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "a formatted text",
    ast.IfExp: "an if inside an expression",
    ast.NamedExpr: "an assignment inside an expression",
    ast.Starred: "a star",
}
_COUNTING = ("range", "len")


class Functions(Protocol):
    """The questions that a program may ask."""

    @property
    def parameters(self) -> Mapping[str, tuple[str, ...]]:
        """The functions by name, each with the names of its parameters; all must be given."""

    def call(self, name: str, arguments: Sequence[Value], line: int) -> Value:
        """Ask a question.

        Raises:
            ProgramError: the arguments cannot be used, or no more may be asked.
        """


def not_in_language(node: ast.stmt | ast.expr) -> ProgramError:
    """Say that a statement or expression is not part of the language."""
    said = _SAID.get(type(node), type(node).__name__.lower())
    return ProgramError(node.lineno, f"{said} is not part of the language")


class Expressions:
    """Works out expressions over the names that a program has assigned to."""

    def __init__(self, functions: Functions, steps: Steps) -> None:
        self._functions = functions
        self._steps = steps
        self._names: dict[str, Value] = {}
        self._constants: dict[ast.Constant, Value] = {}

    def assign(self, target: ast.Name, value: Value) -> None:
        """Give a name a value.

        Raises:
            ProgramError: it is the name of a function.
        """
        if target.id in self._functions.parameters or target.id in _COUNTING:
            raise ProgramError(target.lineno, f"{target.id} is a function and cannot be assigned to")
        self._names[target.id] = value

    def value(self, node: ast.expr) -> Value:
        """Return what an expression comes to.

        Raises:
            ProgramError: it is not part of the language, or comes to nothing.
        """
        self._steps.parts(node.lineno)
        evaluate = _EVALUATED.get(type(node))
        if evaluate is None:
            raise not_in_language(node)
        return evaluate(self, node)

    def _constant(self, node: ast.Constant) -> Value:
        # A loop comes by often, and a text is long to look through.
        if node not in self._constants:
            self._constants[node] = _constant(node.value, node.lineno)
        return self._constants[node]

    def _name(self, node: ast.Name) -> Value:
        try:
            return self._names[node.id]
        except KeyError:
            known = node.id in self._functions.parameters or node.id in _COUNTING
            told = "is a function: call it with its arguments" if known else "is not known"
            raise ProgramError(node.lineno, f"{shown(node.id, 60)} {told}") from None

    def _listing(self, node: ast.List | ast.Tuple) -> Value:
        return listing([self.value(part) for part in node.elts], node.lineno)

    def _dictionary(self, node: ast.Dict) -> Value:
        fields: dict[str, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.value(key) if key is not None else None
            if not isinstance(name, str):
                raise ProgramError(node.lineno, "the keys of a dictionary are texts")
            fields[name] = self.value(value)
        return record("a dictionary", fields, found=bool(fields), line=node.lineno)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self._field(self.value(node.value), node.attr, node.lineno)

    def _field(self, of: Value, name: str, line: int) -> Value:
        if not isinstance(of, Record):
            raise ProgramError(line, f"{kind_of(of)} has no field {shown(name, 60)}")
        self._steps.parts(line, len(of.fields))
        try:
            return of.get(name)
        except KeyError:
            known = ", ".join(shown(field, 60) for field in of.names[:10]) or "none"
            raise ProgramError(line, f"{of.what} has no field {shown(name, 60)}; it has {known}") from None

    def _subscript(self, node: ast.Subscript) -> Value:
        of, line = self.value(node.value), node.lineno
        if isinstance(node.slice, ast.Slice):
            return self._sliced(of, node.slice, line)
        at = self.value(node.slice)
        if isinstance(of, Listing) and is_whole(at):
            if not -len(of.items) <= at < len(of.items):
                raise ProgramError(line, f"the list has {len(of.items)} items and none at {at}")
            return of.items[at]
        if isinstance(of, Record) and isinstance(at, str):
            return self._field(of, at, line)
        raise ProgramError(line, f"{kind_of(of)} has no item at {kind_of(at)}")

    def _sliced(self, of: Value, places: ast.Slice, line: int) -> Value:
        if not isinstance(of, Listing) or places.step is not None:
            raise ProgramError(line, "a slice is one of a list, from one place to another")
        self._steps.parts(line, len(of.items))
        return listing(of.items[self._place(places.lower, line) : self._place(places.upper, line)], line)

    def _place(self, node: ast.expr | None, line: int) -> int | None:
        at = None if node is None else self.value(node)
        if at is not None and not is_whole(at):
            raise ProgramError(line, "the ends of a slice are whole numbers")
        return at

    def _call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name):
            raise ProgramError(node.lineno, "only a function of the language can be called, by its name")
        name = node.func.id
        if name in _COUNTING:
            return self._count(name, node)
        parameters = self._functions.parameters.get(name)
        if parameters is None:
            known = ", ".join((*self._functions.parameters, *_COUNTING))
            raise ProgramError(node.lineno, f"{shown(name, 60)} is no function here; there are {known}")
        return self._functions.call(name, self._arguments(node, name, parameters), node.lineno)

    def _arguments(self, node: ast.Call, name: str, parameters: tuple[str, ...]) -> list[Value]:
        told = f"{name} takes {', '.join(parameters)}"
        given: dict[str, Value] = {}
        if len(node.args) > len(parameters):
            raise ProgramError(node.lineno, told)
        for parameter, argument in zip(parameters, node.args, strict=False):
            given[parameter] = self.value(argument)
        for keyword in node.keywords:
            if keyword.arg not in parameters or keyword.arg in given:
                raise ProgramError(node.lineno, told)
            given[keyword.arg] = self.value(keyword.value)
        if len(given) < len(parameters):
            raise ProgramError(node.lineno, told)
        return [given[parameter] for parameter in parameters]

    def _count(self, name: str, node: ast.Call) -> Value:
        if len(node.args) != 1 or node.keywords:
            raise ProgramError(node.lineno, f"{name} takes one value")
        value = self.value(node.args[0])
        if name == "len":
            if not isinstance(value, Listing | str):
                raise ProgramError(node.lineno, f"{kind_of(value)} has no length")
            return len(value) if isinstance(value, str) else len(value.items)
        if not is_whole(value) or value > MAX_ITEMS:
            raise ProgramError(node.lineno, f"range takes a whole number of at most {MAX_ITEMS}")
        self._steps.parts(node.lineno, max(value, 0))
        return listing(range(value), node.lineno)

    def _bool_op(self, node: ast.BoolOp) -> Value:
        found: Value = None
        for part in node.values:
            found = self.value(part)
            if bool(found) == isinstance(node.op, ast.Or):
                break
        return found

    def _unary_op(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if not isinstance(node.op, ast.USub):
            raise ProgramError(node.lineno, "arithmetic is not part of the language")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ProgramError(node.lineno, f"there is no negative of {kind_of(value)}")
        return -value

    def _compare(self, node: ast.Compare) -> Value:
        one = self.value(node.left)
        for operator, part in zip(node.ops, node.comparators, strict=True):
            other = self.value(part)
            # Whatever is in the larger one may have to be looked at.
            self._steps.parts(part.lineno, max(size_of(one), size_of(other)))
            if not holds(operator, one, other, part.lineno):
                return False
            one = other
        return True


# Keyed by the exact type: what is not here is not in the language.
_EVALUATED: Mapping[type[ast.expr], Callable[[Expressions, Any], Value]] = {
    ast.Constant: Expressions._constant,  # noqa: SLF001 - its own table
    ast.Name: Expressions._name,  # noqa: SLF001
    ast.List: Expressions._listing,  # noqa: SLF001
    ast.Tuple: Expressions._listing,  # noqa: SLF001
    ast.Dict: Expressions._dictionary,  # noqa: SLF001
    ast.Attribute: Expressions._attribute,  # noqa: SLF001
    ast.Subscript: Expressions._subscript,  # noqa: SLF001
    ast.Call: Expressions._call,  # noqa: SLF001
    ast.BoolOp: Expressions._bool_op,  # noqa: SLF001
    ast.UnaryOp: Expressions._unary_op,  # noqa: SLF001
    ast.Compare: Expressions._compare,  # noqa: SLF001
}


def _constant(value: object, line: int) -> Value:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise ProgramError(line, f"a text of {len(value)} characters is too long: at most {MAX_TEXT}")
        return text(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        if value > MAX_NUMBER:
            raise ProgramError(line, f"a number is too large: at most {MAX_NUMBER}")
        return value
    said = "..." if value is Ellipsis else type(value).__name__
    raise ProgramError(line, f"{said} is not part of the language")
