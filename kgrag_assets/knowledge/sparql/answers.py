"""Reading an answer in the SPARQL JSON results format: whole and well-formed, or not at all.

The format: https://www.w3.org/TR/sparql11-results-json/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from kgrag_assets.knowledge.sparql.errors import SparqlError

MEDIA_TYPE = "application/sparql-results+json"

# Blazegraph answers 200, writes rows, and on an error goes on with the query's text and a stack trace.
_BROKE_OFF = b"SPARQL-QUERY:"
_TIMED_OUT = (b"java.util.concurrent.TimeoutException", b"QueryTimeoutException")
_LOOK_AT = 1 << 16


class Term(msgspec.Struct, frozen=True):
    """One value of a row."""

    type: Literal["uri", "literal", "typed-literal", "bnode"]
    value: str
    language: str | None = msgspec.field(default=None, name="xml:lang")
    datatype: str | None = None

    @property
    def is_iri(self) -> bool:
        """Whether this is an IRI."""
        return self.type == "uri"

    @property
    def is_literal(self) -> bool:
        """Whether this is a literal."""
        return self.type in ("literal", "typed-literal")


Row = dict[str, Term]


class _Head(msgspec.Struct):
    vars: list[str]


class _Results(msgspec.Struct):
    bindings: list[Row]


class _Document(msgspec.Struct):
    head: _Head
    results: _Results


@dataclass(frozen=True)
class Answer:
    """All rows of one answer; a variable without a value is missing from its row. ``kept``: it came from the disk."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    kept: bool = False


def value(row: Row, name: str) -> str:
    """Return the text of a variable that the query always binds.

    Raises:
        SparqlError: the endpoint left it out.
    """
    term = row.get(name)
    if term is None:
        raise SparqlError(f"the endpoint answered with a row without ?{name}, which the query asks for")
    return term.value


class BrokenAnswerError(ValueError):
    """Bytes are no whole answer; the message says in what way."""


class EndedByServerError(BrokenAnswerError):
    """The server ran into its time limit in the middle of the answer."""


def decode_answer(raw: bytes, *, kept: bool = False) -> Answer:
    """Read the bytes of an answer.

    Raises:
        EndedByServerError: rows were coming, then the server's message that time is up.
        BrokenAnswerError: not JSON, not whole, or not the results of a SELECT.
    """
    try:
        document = _DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        if says_timeout(raw):
            raise EndedByServerError(
                "the answer breaks off where the query ran into the server's time limit"
            ) from error
        if _BROKE_OFF in raw[-_LOOK_AT:]:
            raise BrokenAnswerError("the answer breaks off with an error of the server") from error
        raise BrokenAnswerError(f"the answer is not whole SPARQL JSON results ({error})") from error
    return Answer(tuple(document.head.vars), tuple(document.results.bindings), kept=kept)


def says_timeout(raw: bytes) -> bool:
    """Whether a server's text says that a query took too long."""
    ends = raw[:_LOOK_AT] + b"\n" + raw[-_LOOK_AT:]
    return any(mark in ends for mark in _TIMED_OUT)


_DECODER = msgspec.json.Decoder(_Document)
