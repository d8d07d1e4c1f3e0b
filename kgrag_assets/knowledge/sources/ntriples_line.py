"""One line of N-Triples: its grammar, and what its terms say once their escapes are undone.

The format: https://www.w3.org/TR/n-triples/.
"""

from __future__ import annotations

import re

_IRI_CHARS = r'[^\x00-\x20<>"{}|^`\\]*+'
_ESCAPED = r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_IRI = rf"<([A-Za-z][A-Za-z0-9+.\-]*+:{_IRI_CHARS}(?:{_ESCAPED}{_IRI_CHARS})*+)>"
_BLANK = r'(_:[^\s<>"]*[^\s<>".])'
_LITERAL_ESCAPED = rf"(?:\\[tbnrf\"'\\]|{_ESCAPED})"
_LITERAL = rf'"([^"\\\r\n]*+(?:{_LITERAL_ESCAPED}[^"\\\r\n]*+)*+)"'
_LANGUAGE = r"@([A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--(?:ltr|rtl))?"
_LINE = re.compile(
    rf"[ \t]*(?:{_IRI}|{_BLANK})[ \t]*{_IRI}[ \t]*"
    rf"(?:{_IRI}|{_LITERAL}(?:[ \t]*{_LANGUAGE}|\^\^[ \t]*{_IRI})?|{_BLANK})"
    r"[ \t]*\.[ \t]*(?:#.*)?\Z"
)
_PLAIN_IRI = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*+:{_IRI_CHARS}\Z")
_NO_STATEMENT = re.compile(r"[ \t]*(?:#.*)?\Z")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^uU])")
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}

# Subject's IRI, blank subject, predicate, object's IRI, text, language, datatype, blank object: as written, or None.
Terms = tuple[str | None, ...]


class NotATripleError(ValueError):
    """A line is no N-Triples statement; the message says why, for the reject table."""


def terms_of(line: str) -> Terms | None:
    """Return the eight ``Terms`` of a line with their escapes; None for a blank line or a comment.

    Raises:
        NotATripleError: the line is neither.
    """
    match = _LINE.match(line)
    if match is not None:
        return match.groups()
    if _NO_STATEMENT.match(line):
        return None
    raise NotATripleError(problem_of(line))


class LineTerms:
    """Finds the terms of lines as ``terms_of`` does, faster where lines repeat parts of those before.

    Most lines are written with single spaces and repeat the subject of the line before, a predicate of the block
    and the end of a literal (``"@en .``): what was once found to be well formed is not looked at again.
    """

    def __init__(self) -> None:
        self.subject, self.subject_iri = "", ""
        self.predicates: dict[str, str] = {}
        self.ends: dict[str, tuple[str | None, str | None]] = {}

    def of(self, line: str) -> Terms | None:
        """Return the terms of a line; None for a blank line or a comment.

        Raises:
            NotATripleError: the line is neither.
        """
        parts = line.split(" ", 2)
        if len(parts) != 3:
            return terms_of(line)
        subject, predicate, rest = parts
        known = self.predicates.get(predicate)
        if known is not None and subject == self.subject:
            if rest.endswith("> .") and _PLAIN_IRI.match(rest, 1, len(rest) - 3) and rest[0] == "<":
                return self.subject_iri, None, known, rest[1:-3], None, None, None, None
            end = rest.rfind('"')
            if end > 0 and rest[0] == '"':
                text = rest[1:end]
                tag = self.ends.get(rest[end:])
                if tag is not None and '"' not in text and "\\" not in text and "\r" not in text:
                    return self.subject_iri, None, known, None, text, tag[0], tag[1], None
        terms = terms_of(line)
        if terms is not None:
            self._learn(subject, predicate, rest, terms)
        return terms

    def _learn(self, subject: str, predicate: str, rest: str, terms: Terms) -> None:
        iri, _, predicate_iri, _, text, language, datatype, _ = terms
        if (
            iri is not None
            and predicate_iri is not None
            and subject == f"<{iri}>"
            and predicate == f"<{predicate_iri}>"
        ):
            self.subject, self.subject_iri = subject, iri
            self.predicates[predicate] = predicate_iri
            if text is not None and rest.startswith(f'"{text}"') and "#" not in (end := rest[len(text) + 1 :]):
                self.ends[end] = language, datatype


def unescaped(text: str) -> str:
    r"""Undo the escapes of a literal: ``\n``, ``\"``, ``\u00e9`` and so on.

    Raises:
        NotATripleError: an escape stands for no character.
    """
    return text if "\\" not in text else _ESCAPE.sub(_character, text)


def unescaped_iri(iri: str) -> str:
    """Undo the escapes of an IRI.

    Raises:
        NotATripleError: an escape stands for no character, or for one that an IRI must not have.
    """
    if "\\" not in iri:
        return iri
    iri = _ESCAPE.sub(_character, iri)
    if _NOT_IN_IRI.search(iri):
        raise NotATripleError(f"an IRI has a character that it must not have: {iri[:60]!r}")
    return iri


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        return _CHARACTERS[escape]
    code = int(escape[1:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise NotATripleError(f"the escape \\{escape} stands for no character")
    return chr(code)


_SUBJECT = re.compile(rf"[ \t]*(?:{_IRI}|{_BLANK})[ \t]*")
_PREDICATE = re.compile(rf"{_IRI}[ \t]*")
_OBJECT = re.compile(rf"(?:{_IRI}|{_LITERAL}(?:[ \t]*{_LANGUAGE}|\^\^[ \t]*{_IRI})?|{_BLANK})[ \t]*")


def problem_of(line: str) -> str:  # noqa: PLR0911  (one way out a fault)
    """Say which part of a line that is no statement is wrong."""
    if line.lstrip(" \t").startswith("@"):
        return "this is Turtle: N-Triples has no @prefix; convert the file"
    at = 0
    for name, pattern in (("subject", _SUBJECT), ("predicate", _PREDICATE), ("object", _OBJECT)):
        match = pattern.match(line, at)
        if match is None:
            rest = line[at:].lstrip(" \t")
            if not rest:
                return f"the {name} is missing"
            if rest.startswith("<<"):
                return f"the {name} is a statement itself: such are not taken"
            if rest.startswith('"') and name == "object":
                return f"the text has a wrong escape or does not end: {rest[:60]!r}"
            return f"the {name} is not well formed: {rest[:60]!r}"
        at = match.end()
    if not line[at:].startswith("."):
        return "the line does not end with a dot"
    return f"something stands behind the dot: {line[at + 1 :].strip()[:60]!r}"
