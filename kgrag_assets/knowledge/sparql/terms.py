"""How texts and ids are written into a query: the only two functions by which anything untrusted gets there."""

from __future__ import annotations

import re

# What IRIREF of SPARQL's grammar leaves out; everything else stays between < and >.
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\\x7f]+\Z")
_LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*\Z")
# Characters of a path as RFC 3986 has them; a percent sign only with its two digits.
_LOCAL_ASCII = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*\Z")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:/|\?|$)")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
MAX_LOCAL = 200
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})


def literal(text: str, language: str = "") -> str:
    """Write a text as a SPARQL string literal.

    Args:
        text: any text.
        language: a language tag (``en``); empty for a plain literal.

    Raises:
        ValueError: the text has a lone surrogate, which no query can hold, or the tag is none.
    """
    if not is_writable(text):
        raise ValueError("a text with a lone surrogate cannot be written into a query")
    if language and _LANGUAGE.match(language) is None:
        raise ValueError(f"not a language tag: {language[:40]!r}")
    tag = f"@{language}" if language else ""
    return f'"{text.translate(_ESCAPES)}"{tag}'


def is_writable(text: str) -> bool:
    """Whether UTF-8 can write a text: false for lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def iri(text: str) -> str:
    """Write an absolute IRI between angle brackets.

    Raises:
        ValueError: a character that could end it, or that no IRI has.
    """
    if not is_iri(text):
        raise ValueError(f"not an absolute IRI: {text[:80]!r}")
    return f"<{text}>"


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI that can stand in a query."""
    return _IRI.match(text) is not None and is_writable(text)


def is_local(text: str) -> bool:
    """Whether a text can follow a prefix and make an IRI that means itself.

    Not so: what could end the IRI, spaces, ``..`` as a step, characters that RFC 3987 leaves out of a path.
    """
    if not text or len(text) > MAX_LOCAL or _DOTS.search(text):
        return False
    others = [char for char in text if char >= "\x80"]
    # U+FFF0 and above of the first plane are printable to Python and no part of an IRI.
    if not all(char.isprintable() and not "\ufff0" <= char <= "\uffff" for char in others):
        return False
    # Run by run: a percent sign must have its digits right behind it.
    return all(_LOCAL_ASCII.match(run) is not None for run in _NOT_ASCII.split(text))
