"""Reading a yes or no from words: labels such as ``Label: 0`` and sentences that are nothing but a verdict."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A label: its name, a colon or equals sign, and a value. Repetitions are bounded: what a model writes must
# not make the search slow.
_NAME_AND_VALUE = r"""(?<![\w-])(?:label|match|is_match|matched|answer|verdict)["'*_`]{0,4}\s{0,9}
        [:=]["'*_`]{0,4}\s{0,9}["'*_`]{0,4}
        (?P<value>yes|no|true|false|1|0|not\ (?:a\ )?match(?:ed)?|no\ match|match(?:ed)?)\b"""
_ANY_LABEL = re.compile(_NAME_AND_VALUE, re.IGNORECASE | re.VERBOSE)
# A label that nothing qualifies: not "0 or 1", "0/1", "0.8", "1%", "no doubt".
_LABEL = re.compile(
    _NAME_AND_VALUE
    + r"""["'*_`]{0,4}(?!\.?\d)(?!\s{0,9},\s{0,9}(?:0|1|yes|no|true|false)\b)
        (?=\s{0,9}(?:$|[.,;!?)\]}\n\u2013\u2014]|-\s))""",
    re.IGNORECASE | re.VERBOSE,
)
_YES = re.compile(r"(?:yes|true|match|matched|a match|it is a match|they match|they correspond)", re.IGNORECASE)
_NO = re.compile(
    r"(?:no|false|no match|not matched|not a match|not matching|it is not a match|"
    r"they do not (?:match|correspond)|they don['\u2019]t (?:match|correspond))",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|cannot|without|nothing|false|unmatched|mismatch\w*|un(?:related|like)|"
    r"differ\w*|incorrect|wrong|fail\w*)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
# A full stop inside a number is not the end of a sentence.
_SENTENCE = re.compile(r"[!?;\n]+|\.(?!\d)|,(?=\s)")
_MARKUP_BUT_COLON = " \t\r\"'`*_#>-()[]{}"
_MARKUP = _MARKUP_BUT_COLON + ":"


@dataclass(frozen=True)
class PlainVerdicts:
    """Verdicts in the order of the text.

    ``labelled``: one of them was a label. ``nothing_else``: the text held nothing but verdicts. ``doubtful``:
    there was a label whose value is qualified, such as ``Label: 0 or 1``.
    """

    verdicts: tuple[bool, ...]
    labelled: bool
    nothing_else: bool
    doubtful: bool


def has_negation(text: str) -> bool:
    """Whether any word of the text negates something."""
    return _NEGATION.search(text) is not None


def plain_verdicts(text: str) -> PlainVerdicts:
    """Collect the labels of a text and the sentences in it that say yes or no and nothing else."""
    verdicts: list[bool] = []
    labels = list(_LABEL.finditer(text))
    verdicts.extend(_YES.fullmatch(label["value"]) is not None or label["value"] == "1" for label in labels)
    others = 0
    for sentence in _SENTENCE.split(_LABEL.sub("\n", text)):
        words = " ".join(sentence.strip(_MARKUP).split())
        if not words:
            continue
        if sentence.rstrip(_MARKUP_BUT_COLON).endswith(":"):
            others += 1  # a heading: what it announces comes after it
        elif _YES.fullmatch(words):
            verdicts.append(True)
        elif _NO.fullmatch(words):
            verdicts.append(False)
        else:
            others += 1
    doubtful = sum(1 for _ in _ANY_LABEL.finditer(text)) > len(labels)
    return PlainVerdicts(tuple(verdicts), bool(labels), nothing_else=others == 0, doubtful=doubtful)
