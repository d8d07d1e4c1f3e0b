"""What the values of two attributes have in common, found on this machine; told as shares, never as values."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.value_profile import ValueProfile, number_of, pattern_of

# Weights in log odds. Equal values say most; values that many columns have (0, 1, Y) say little, for they meet by
# chance. What speaks against a pair weighs less than what speaks for it: one fact is often coded in two ways.
SHARED, SHARED_COMMON = 1.5, 0.3
SAME_PATTERNS, OTHER_PATTERNS = 0.3, -0.5
SAME_RANGE, OTHER_RANGE = 0.5, -0.8
SAME_COUNTS, OTHER_COUNTS = 0.2, -0.7
OTHER_LENGTHS = -0.4
# All of it together: these speak of the same values in several ways.
AT_LEAST, AT_MOST = -1.5, 2.0

# A column of at most so many different values is a list of kinds; one of more than ``MANY`` is none.
HANDFUL, MANY = 12, 100
# From here on nearly all values are different: the column identifies.
UNIQUE = 0.9
# Mean lengths that differ by this factor are of codes and of texts.
LENGTHS_APART = 5.0

_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")
_COMMON = frozenset({"true", "false", "yes", "no", "unknown", "other", "none", "null", "n/a", "na"})
_LARGEST_COMMON = 20


@dataclass(frozen=True)
class Compared:
    """One thing that was compared: what, in words, how alike (0..1), and its weight in log odds for the pair."""

    what: str
    text: str
    score: float
    weight: float


def shape(value: str) -> str:
    """Reduce a value to its shape: runs of letters to ``a``, runs of digits to ``9``, the rest as it is."""
    return _DIGITS.sub("9", _LETTERS.sub("a", value.strip()))


def normalised(value: str) -> str:
    """Write a value so that equal ones meet: without case, blanks around it, or another way to write a number."""
    plain = " ".join(unicodedata.normalize("NFKC", value).split()).casefold()
    number = number_of(plain)
    # Adding 0 turns -0 into 0.
    return plain if number is None else f"{number + 0.0:.12g}"


def is_common(value: str) -> bool:
    """Whether columns that have nothing to do with each other may both hold a normalised value."""
    number = number_of(value)
    if number is not None:
        return abs(number) <= _LARGEST_COMMON and number == int(number)
    return len(value) <= 1 or value in _COMMON


def tenths(share: float) -> float:
    """Round a share (0..1) to tenths, what is there to one at least: a few rows more must not make another judgment."""
    return max(0.1, round(share, 1)) if share > 0 else 0.0


def compare_values(source: Attribute, target: Attribute) -> list[Compared]:
    """Compare what is known of the values of two attributes; nothing where one side has none.

    The same from both sides. The weights are those of a judge that adds up evidence.
    """
    found = [
        *_overlap(source, target),
        *_ranges(source, target),
        *_counts(source, target),
        *_lengths(source.profile, target.profile),
    ]
    total = sum(one.weight for one in found)
    limited = min(max(total, AT_LEAST), AT_MOST)
    scale = limited / total if total else 1.0
    return [Compared(one.what, one.text, one.score, one.weight * scale) for one in found]


def _overlap(source: Attribute, target: Attribute) -> list[Compared]:
    mine, other = _values(source), _values(target)
    if not mine or not other:
        return []
    smaller = min(len(mine), len(other))
    shared = mine & other
    patterns = _patterns(source, target)
    if shared:
        share = tenths(len(shared) / smaller)
        telling = sum(not is_common(value) for value in shared) / len(shared)
        weight = share * (SHARED * telling + SHARED_COMMON * (1.0 - telling))
        text = f"{share:.0%} of the smaller side's sample values stand on the other side, too"
        # Never less than values that only look alike would weigh.
        return [Compared("overlap", text, share, max(weight, SAME_PATTERNS))]
    compared = [Compared("overlap", "no sample value stands on both sides", 0.0, 0.0)]
    if patterns:
        text = f"{patterns:.0%} of the patterns of the sample values are written alike"
        return [*compared, Compared("shape", text, patterns, SAME_PATTERNS)]
    return [*compared, Compared("shape", "the sample values are written in different ways", 0.0, OTHER_PATTERNS)]


def _values(attribute: Attribute) -> set[str]:
    return {normal for value in attribute.sample_values if (normal := normalised(value))}


def _patterns(source: Attribute, target: Attribute) -> float:
    """Share of the values that are written as values of the other side are, 0..1."""
    shapes = [_shares(attribute) for attribute in (source, target)]
    return tenths(sum(min(share, shapes[1].get(pattern, 0.0)) for pattern, share in sorted(shapes[0].items())))


def _shares(attribute: Attribute) -> Mapping[str, float]:
    """Return the shapes of an attribute's values with their shares, which sum up to 1."""
    profile = attribute.profile
    if profile is not None and profile.patterns:
        written = [(pattern.pattern, pattern.share) for pattern in profile.patterns]
    else:
        written = [(pattern_of(value), 1.0) for value in attribute.sample_values if value.strip()]
    # Words of different lengths, and numbers, are written alike.
    counted = [(shape(pattern.replace("+", "")), share) for pattern, share in written]
    total = sum(share for _, share in counted)
    shares: dict[str, float] = defaultdict(float)
    for pattern, share in counted:
        shares[pattern] += share / total
    return shares


def _ranges(one: Attribute, two: Attribute) -> list[Compared]:
    source, target = one.profile, two.profile
    if source is None or target is None:
        return []
    # Running numbers of two tables: where they begin and end says nothing.
    running = all(side.type_family != "decimal" and _identifies(side.profile) for side in (one, two))
    for what, names, unit in (
        ("years", ("first_year", "last_year"), 1.0),
        ("numbers", ("quartile_1", "quartile_3"), 0.0),
    ):
        ends = [[getattr(profile, name) for name in names] for profile in (source, target)]
        if any(end is None for pair in ends for end in pair):
            continue
        if what == "numbers" and running:
            continue
        share = tenths(_common_share(ends[0], ends[1], unit))
        if share > 0:
            text = f"the {what} of both sides lie in ranges that overlap by {share:.0%}"
            return [Compared("range", text, share, SAME_RANGE * share)]
        if what == "years" or _apart(source, target):
            return [Compared("range", f"the {what} of the two sides lie in ranges apart", 0.0, OTHER_RANGE)]
    return []


def _identifies(profile: ValueProfile | None) -> bool:
    return profile is not None and profile.uniqueness is not None and profile.uniqueness >= UNIQUE


def _common_share(one: Iterable[float], two: Iterable[float], unit: float) -> float:
    """Length of what two ranges share over the length of both together, 0..1; a point has the length ``unit``."""
    (low, high), (other_low, other_high) = one, two
    shared = min(high, other_high) - max(low, other_low)
    if shared < 0:
        return 0.0
    whole = max(high, other_high) - min(low, other_low)
    return (shared + unit) / (whole + unit) if whole + unit > 0 else 1.0


def _apart(source: ValueProfile, target: ValueProfile) -> bool:
    ends = (source.minimum, source.maximum, target.minimum, target.maximum)
    if any(end is None for end in ends):
        return False
    low, high, other_low, other_high = (end or 0.0 for end in ends)
    return high < other_low or other_high < low


def _counts(source: Attribute, target: Attribute) -> list[Compared]:
    mine, other = source.distinct_count, target.distinct_count
    if not mine or not other:
        return []
    low, high = min(mine, other), max(mine, other)
    if low <= HANDFUL and high > MANY:
        which = "source" if mine == low else "target"
        text = f"the {which} has a handful of different values, the other side many"
        return [Compared("distinct", text, 0.0, OTHER_COUNTS)]
    profiles = [side.profile for side in (source, target) if side.profile is not None]
    unique = [_identifies(profile) for profile in profiles if profile.uniqueness is not None]
    if low > MANY and unique == [True, True]:
        return [Compared("distinct", "nearly all values are different, on both sides", 1.0, SAME_COUNTS)]
    if high <= HANDFUL and low > 1:
        return [Compared("distinct", "both sides have a handful of different values", 1.0, SAME_COUNTS)]
    return []


def _lengths(source: ValueProfile | None, target: ValueProfile | None) -> list[Compared]:
    means = [profile.mean_length for profile in (source, target) if profile is not None and profile.mean_length]
    lengths = sorted(length for length in means if length is not None)
    if len(lengths) < 2 or lengths[1] < LENGTHS_APART * lengths[0]:
        return []
    text = "the values of one side are several times as long as the other's"
    return [Compared("length", text, 0.0, OTHER_LENGTHS)]
