"""Making values fit to be shown to somebody else: what looks personal is masked, and what only may be, too."""

from __future__ import annotations

import re

from kgrag_assets.models.prompt_text import one_line, shown

MASK = "…"
# Longer values are texts that somebody wrote, and may hold anything.
LONGEST_VALUE = 24
# Runs of digits from this length on identify somebody or something; shorter ones are codes, counts, years.
LONGEST_NUMBER = 4

_EMAIL = re.compile(r"\S+@\S+")
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,}", re.IGNORECASE)
_FULL_DATE = re.compile(r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d{1,4}|\d{1,2}[-/. ][a-z]{3,9}[-/. ]\d{2,4}|\d{8}", re.IGNORECASE)
# Digits in groups, as telephone, social security and card numbers are written.
_GROUPED_DIGITS = re.compile(r"\+?\d[\d\s().\-/]{5,}\d")
_DIGITS = re.compile(r"\d+")
# Two or more words that begin with a capital, or one before or after a comma: as people and streets are named.
_PROPER_NAMES = re.compile(r"[^\W\d_]*[A-ZÀ-ÖØ-Þ][^\W\d_]*[,.\s]+(?:[^\W\d_]+[,.\s]+)*[A-ZÀ-ÖØ-Þ][^\W\d_]*")
_ADDRESS = re.compile(r"\d+\S*\s+[^\W\d_]{2,}|[^\W\d_]{3,}\.?\s+\d+")
# Names of columns whose values are about a person whatever they look like.
_PERSONAL_WORDS = frozenset(
    [
        "name",
        "surname",
        "firstname",
        "lastname",
        "mail",
        "email",
        "phone",
        "telephone",
        "fax",
        "mobile",
        "address",
        "street",
        "birth",
        "born",
        "ssn",
        "passport",
        "iban",
        "account",
        "login",
        "user",
        "username",
        "password",
        "patient",
        "note",
        "comment",
    ]
)


def is_personal_column(words: list[str]) -> bool:
    """Say whether the words of a column's name speak of a person's data."""
    return bool(_PERSONAL_WORDS & set(words))


def masked(value: str, *, personal: bool = False) -> str:
    """Return what may be shown of a value: the value itself if it looks like a code, a word or a small number.

    Masked are e-mail and IP addresses, URLs, UUIDs, full dates, telephone, security and card numbers, digits from
    five on, names and addresses as people write them, and texts of more than ``LONGEST_VALUE`` characters. In doubt a
    value is masked; what is left is one line without invisible characters.

    Args:
        value: somebody's value.
        personal: its column speaks of a person: then only the kind of each character is shown.
    """
    line = one_line(value)
    if personal or len(line) > LONGEST_VALUE or _looks_personal(line):
        return shape_of(line)
    return _DIGITS.sub(lambda found: found[0] if len(found[0]) <= LONGEST_NUMBER else "9" * LONGEST_NUMBER + MASK, line)


def shape_of(value: str) -> str:
    """Return the shape of a value: letters become ``A`` or ``a``, digits ``9``, the rest stays."""
    changed = "".join(
        "9" if character.isnumeric() else ("A" if character.isupper() else "a") if character.isalpha() else character
        for character in value
    )
    return shown(changed, LONGEST_VALUE)


def _looks_personal(line: str) -> bool:
    tests = (_EMAIL, _URL, _UUID, _IP_ADDRESS, _FULL_DATE, _GROUPED_DIGITS, _PROPER_NAMES, _ADDRESS)
    return any(test.search(line) for test in tests)
