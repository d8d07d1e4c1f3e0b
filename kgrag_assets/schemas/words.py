"""The words of a name: splitting identifiers, spelling out abbreviations, stemming."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any

# A run of capitals before a word (HTTPServer), a word, capitals alone, digits, or letters without case.
_PIECE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_WORD = re.compile(r"[^\W_]+")

# Words that carry the grammar of a description, not its subject.
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "can",
        "each",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "of",
        "on",
        "or",
        "other",
        "should",
        "such",
        "that",
        "the",
        "their",
        "them",
        "these",
        "this",
        "those",
        "to",
        "used",
        "uses",
        "was",
        "were",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
    ]
)


def split_name(name: str) -> list[str]:
    """Split an identifier into lower-case words: at case changes, digits and everything that is no letter.

    ``pat_DOB`` gives ``pat, dob``; ``HTTPServerId2`` gives ``http, server, id, 2``.
    """
    return [piece.lower() for piece in _PIECE.findall(name)]


@lru_cache(maxsize=1)
def abbreviations() -> dict[str, tuple[str, ...]]:
    """Return the abbreviations of databases and health care, each with the words it stands for."""
    text = files("kgrag_assets.schemas").joinpath("abbreviations.csv").read_text(encoding="utf-8")
    return {row["abbreviation"]: tuple(row["expansion"].split()) for row in csv.DictReader(text.splitlines())}


def expand_words(words: Iterable[str]) -> list[str]:
    """Spell out abbreviations; other words stay."""
    known = abbreviations()
    return [part for word in words for part in known.get(word, (word,))]


def name_words(name: str) -> list[str]:
    """Split a name and spell out its abbreviations."""
    return expand_words(split_name(name))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Reduce an English word to its stem (Porter's second algorithm, by snowballstemmer)."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:  # noqa: ANN401  (snowballstemmer has no types)
    from snowballstemmer import stemmer

    return stemmer("english")


def stems(words: Iterable[str]) -> list[str]:
    """Reduce words to stems, leaving out stop words."""
    return [stem(word) for word in words if word not in STOP_WORDS]


def text_words(text: str) -> list[str]:
    """Split running text into lower-case words; identifiers in it are split like names, abbreviations spelled out."""
    return [part for token in _WORD.findall(text) for part in expand_words(split_name(token))]
