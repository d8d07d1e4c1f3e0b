"""What UMLS says about itself: relations and their inverses (MRDOC), languages of sources (MRSAB), language codes."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kgrag_assets.knowledge.sources.wikidata_values import one_line
from kgrag_assets.rows.keys import key_of

# Codes of settings -> UMLS's.
_LANGUAGES = {
    "en": "ENG", "es": "SPA", "fr": "FRE", "de": "GER", "pt": "POR", "it": "ITA", "nl": "DUT", "ja": "JPN",
    "ru": "RUS", "cs": "CZE", "sv": "SWE", "no": "NOR", "nb": "NOR", "nn": "NOR", "da": "DAN", "fi": "FIN",
    "hu": "HUN", "ko": "KOR", "pl": "POL", "tr": "TUR", "zh": "CHI", "el": "GRE", "et": "EST", "lv": "LAV",
    "hr": "SCR", "sh": "SCR", "he": "HEB", "eu": "BAQ", "uk": "UKR", "ar": "ARA",
}  # fmt: skip
_CODES = frozenset(_LANGUAGES.values())
_ENGLISH = "ENG"
_LANGUAGE_AT_END = re.compile(r"[A-Z]{2,}([A-Z]{3})\Z|[A-Z]+-([A-Z]{2})-[A-Z]{2}\Z")
_OPENERS: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open}


def language_code(language: str) -> str | None:
    """Return UMLS's code of a language (``ENG`` for ``en``, ``en-gb`` or ``eng``); None where it has none."""
    code = language.upper()
    return code if code in _CODES else _LANGUAGES.get(language.lower().partition("-")[0])


@dataclass(frozen=True)
class Documents:
    """What MRDOC and MRSAB say, as pairs: RELA and its inverse, RELA and its name, source and its language."""

    inverse_pairs: tuple[tuple[str, str], ...] = ()
    name_pairs: tuple[tuple[str, str], ...] = ()
    language_pairs: tuple[tuple[str, str], ...] = ()
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.inverse_pairs, self.name_pairs, self.language_pairs))

    @cached_property
    def inverses(self) -> dict[str, str]:
        """Each RELA with its inverse."""
        return dict(self.inverse_pairs)

    @cached_property
    def names(self) -> dict[str, str]:
        """Each RELA with its name for people."""
        return dict(self.name_pairs)

    @cached_property
    def _languages(self) -> dict[str, str]:
        return dict(self.language_pairs)

    def language_of(self, source: str) -> str:
        """Return the code of a source's language: as MRSAB has it, else by the end of its name (``MSHSPA``)."""
        known = self._languages.get(source)
        if known is not None:
            return known
        match = _LANGUAGE_AT_END.match(source)
        if match is None:
            return _ENGLISH
        if match[1] is not None:
            return match[1] if match[1] in _CODES else _ENGLISH
        return _LANGUAGES.get(match[2].lower(), _ENGLISH)


NO_DOCUMENTS = Documents()


def read_documents(folder: Path) -> Documents:
    """Read MRDOC and MRSAB in a folder, as far as they are there and whole; without them rules decide."""
    inverses, names, languages = {}, {}, {}
    for cells in _rows(folder, "MRDOC", 4):
        about, relation, kind, text = cells
        # Entries that nobody filled in have no letters, and "Not Available" is no relation.
        if about != "RELA" or not any(char.isalpha() for char in text) or text == "Not Available":
            continue
        if kind == "rela_inverse":
            inverses[relation] = text
        elif kind == "expanded_form":
            names[relation] = one_line(text)
    for relation, inverse in list(inverses.items()):
        inverses.setdefault(inverse, relation)
    for cells in _rows(folder, "MRSAB", 25):
        source, language = cells[3], cells[19]
        if source and language:
            languages[source] = language
    return Documents(*(tuple(sorted(pairs.items())) for pairs in (inverses, names, languages)))


def _rows(folder: Path, table: str, width: int) -> Iterator[list[str]]:
    for packed, opener in _OPENERS.items():
        path = folder / f"{table}.RRF{packed}"
        if not path.is_file():
            continue
        try:
            with opener(path, "rt", encoding="utf-8", errors="replace", newline="\n") as handle:
                for line in handle:
                    cells = line.rstrip("\r\n").removesuffix("|").split("|")
                    if len(cells) == width:
                        yield cells
        except (OSError, EOFError, zlib.error):
            return
        return
