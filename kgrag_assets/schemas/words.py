"""The words of a name: splitting identifiers, spelling out abbreviations, stemming."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Protocol

# Changes with the splitting rules or the dictionary; part of what is embedded and compared.
WORDS_VERSION = "words-2"

# Over one letter per character (U upper, L lower, D digit, O letter without case): a run of capitals before
# a capitalised word (HTTPServer), a word, capitals alone, digits, or a run of letters without case.
_PIECE = re.compile(r"U+(?=UL)|U?L+|U+|D+|O+")
_WORD = re.compile(r"[^\W_]+")

# Words that carry the grammar of a description, not its subject.
STOP_WORDS = frozenset(
    "a an and any are as at be been by can each for from has have if in into is "  # noqa: SIM905  (readable)
    "it its may of on or other should such that the their them these this those to "
    "used uses was were when where which who will with".split()
)

# Abbreviations of names that are words of their own in running text ("no", "per", "op").
_WORDS_IN_TEXT = frozenset(
    "ben co col comp def del dep ed er est exp fac gen ins mod mon no op ord per pop pos "  # noqa: SIM905  (readable)
    "pub ref reg rec res sec spec st sum temp trans ver".split()
)


def split_name(name: str) -> list[str]:
    """Split an identifier into lower-case words: at case changes, digits and everything that is no letter.

    Letters of every script are kept, accents composed. ``pat_DOB`` gives ``pat, dob``; ``HTTPServerId2`` gives
    ``http, server, id, 2``; ``Größe_cm`` gives ``größe, cm``. A name without letters or digits gives nothing.
    """
    composed = unicodedata.normalize("NFC", name)
    classes = "".join(_letter_class(character) for character in composed)
    return [composed[match.start() : match.end()].lower() for match in _PIECE.finditer(classes)]


def _letter_class(character: str) -> str:
    if character.isdigit():
        return "D"
    if character.isupper():
        return "U"
    if character.islower():
        return "L"
    return "O" if character.isalpha() or unicodedata.category(character).startswith("M") else " "


def read_abbreviations(text: str) -> dict[str, tuple[str, ...]]:
    """Read a CSV with the columns ``abbreviation`` and ``expansion`` (words with blanks between)."""
    rows = csv.DictReader(text.splitlines())
    return {row["abbreviation"].strip().lower(): tuple(row["expansion"].lower().split()) for row in rows}


@lru_cache(maxsize=1)
def abbreviations() -> dict[str, tuple[str, ...]]:
    """Return the usual abbreviations of databases and health care, each with the words it stands for."""
    return read_abbreviations(files("kgrag_assets.schemas").joinpath("abbreviations.csv").read_text(encoding="utf-8"))


def expand_words(words: Iterable[str], own: Mapping[str, tuple[str, ...]] | None = None) -> list[str]:
    """Spell out abbreviations; other words stay.

    Args:
        words: lower-case words, as ``split_name`` gives them.
        own: further abbreviations, which win over the packaged ones.
    """
    known = abbreviations() if own is None else {**abbreviations(), **own}
    return [part for word in words for part in known.get(word, (word,))]


def name_words(name: str) -> list[str]:
    """Split a name and spell out its abbreviations."""
    return expand_words(split_name(name))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Reduce an English word to its stem (Porter's second algorithm, by snowballstemmer)."""
    return _stemmer().stemWord(word)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str:  # noqa: N802  (the library's name)
        """Reduce a word to its stem."""


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    from snowballstemmer import stemmer

    found: _Stemmer = stemmer("english")
    return found


def stems(words: Iterable[str]) -> list[str]:
    """Reduce words to stems, leaving out stop words."""
    return [stem(word) for word in words if word not in STOP_WORDS]


def text_words(text: str) -> list[str]:
    """Split running text into lower-case words.

    Identifiers in it are split like names and abbreviations spelled out, but for those that are also words.
    """
    found: list[str] = []
    for token in _WORD.findall(text):
        for word in split_name(token):
            found.extend([word] if word in _WORDS_IN_TEXT else expand_words([word]))
    return found
