"""Making values fit to be shown to somebody else: what looks personal is masked, and what only may be, too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgrag_assets.models.prompt_text import one_line, shown

MASK = "…"
# Longer values are texts that somebody wrote, and may hold anything.
LONGEST_VALUE = 24
# Runs of digits from this length on identify somebody or something; shorter ones are codes, counts, years.
LONGEST_NUMBER = 4
# So many digits in one value do, too, however they are set apart; and so long a run of letters with digits is a token.
MOST_DIGITS = 6
LONGEST_TOKEN = 9

_EMAIL = re.compile(r"\S*@\S*")
_URL = re.compile(r"\w+://|www\.|\w\.(?:com|org|net|edu|gov|io|de|uk|eu|nl|be|fr)\b", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,}|::", re.IGNORECASE)
_FULL_DATE = re.compile(
    r"\d{1,4}\s*[-/. ]\s*\d{1,2}\s*[-/. ]\s*\d{1,4}|\d{1,2}[-/. ]*[^\W\d_]{3,9}[-/., ]*\d{2,4}"
    r"|[^\W\d_]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{2,4}|\d{8}",
    re.IGNORECASE,
)
# Digits in groups, as telephone, social security and card numbers are written.
_GROUPED_DIGITS = re.compile(r"\+?\d[\d\s().\-/]{5,}\d|\+\d")
_DIGITS = re.compile(r"\d+")
# Two or more words that begin with a capital, or one before or after a comma: as people and streets are named.
_PROPER_NAMES = re.compile(r"[^\W\d_]*[A-ZÀ-ÖØ-Þ][^\W\d_]*[,.\s]+(?:[^\W\d_]+[,.\s]+)*[A-ZÀ-ÖØ-Þ][^\W\d_]*")
_TITLES = re.compile(r"\b(?:mr|mrs|ms|miss|dr|prof|herr|frau|sir)\b\.?\s", re.IGNORECASE)
_ADDRESS = re.compile(r"\d+\S*\s+[^\W\d_]{2,}|[^\W\d_]{3,}\.?\s+\d+|\bp\.?\s?o\.? box\b", re.IGNORECASE)
_SMALL_QUANTITY = re.compile(
    r"\d{1,4}(?:\.\d{1,2})? ?(?:mg|ml|mcg|µg|g|kg|l|cm|mm|%|iu|meq|mmol|hours?|days?|h)(?:/\w{1,3})?"
)
_TOKEN = re.compile(rf"[^\W_]{{{LONGEST_TOKEN + 1},}}")

# Names of columns whose values are about a person whatever they look like.
_PERSONAL_WORDS = frozenset(
    "name surname firstname lastname first last middle given family maiden nickname mail email phone telephone "  # noqa: SIM905  (readable)
    "fax mobile contact address street city town zip postal birth born birthday death ssn social passport license "
    "licence iban account card tax insurance policy member subscriber login user username password secret token "
    "signature patient guardian relative spouse mother father employer doctor physician nurse note comment remark "
    "narrative message latitude longitude ip url".split()
)
# Words of a description that say as much; a description speaks of many things, so these are fewer.
_PERSONAL_TEXT = frozenset(
    "surname firstname lastname email phone telephone street ssn passport maiden birthday password".split()  # noqa: SIM905
)


def is_personal_column(words: Iterable[str], description: Iterable[str] = ()) -> bool:
    """Say whether the words of a column's name, or of its description, speak of a person's data."""
    return not _PERSONAL_WORDS.isdisjoint(words) or not _PERSONAL_TEXT.isdisjoint(description)


def masked(value: str, *, personal: bool = False) -> str:
    """Return what may be shown of a value: the value itself if it looks like a code, a word or a small number.

    Masked are e-mail and IP addresses, URLs, UUIDs and tokens, full dates, telephone, security and card numbers, digits
    from five on, coordinates, names and addresses as people write them, and texts of more than ``LONGEST_VALUE``
    characters. In doubt a value is masked; what is left is one line without invisible characters.

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
    if _SMALL_QUANTITY.fullmatch(line):
        return False
    if sum(map(str.isdecimal, line)) > MOST_DIGITS and not line.isdecimal():
        return True
    if any(_is_token(run) for run in _TOKEN.findall(line)):
        return True
    tests = (_EMAIL, _URL, _UUID, _IP_ADDRESS, _FULL_DATE, _GROUPED_DIGITS, _PROPER_NAMES, _TITLES, _ADDRESS)
    return any(test.search(line) for test in tests)


def _is_token(run: str) -> bool:
    return any(map(str.isdecimal, run)) and not run.isdecimal()
