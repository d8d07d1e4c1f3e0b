"""How names are written for comparing: folded, and in the singular; one by one, and a column at a time."""

from __future__ import annotations

import re
import unicodedata

import polars as pl

_WORD = re.compile(r"[^\W_]+")
_ES_PLURALS = ("sses", "xes", "shes", "tches", "nches", "rches")
_NO_PLURALS = ("ss", "us", "is")


def folded(text: str) -> str:
    """Write a name without case, accents and punctuation, its words joined by single spaces."""
    # Decomposing can bring capitals (the trademark sign is TM), and folding letters with accents.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join(_WORD.findall("".join(char for char in plain if not unicodedata.combining(char))))


def singular(text: str) -> str:
    """Write a folded name with its last word in the singular, as far as English spelling tells."""
    words = text.split()
    if not words:
        return text
    last = words[-1]
    if last.endswith("ies") and len(last) > 4:
        last = last[:-3] + "y"
    elif last.endswith(_ES_PLURALS):
        last = last[:-2]
    elif last.endswith("s") and not last.endswith(_NO_PLURALS) and len(last) > 3:
        last = last[:-1]
    return " ".join([*words[:-1], last])


def folded_all(names: pl.Series) -> pl.Series:
    """Return ``folded`` of every name; those in ASCII, nearly all, without a loop in Python."""
    frame = (
        names.alias("name")
        .to_frame()
        .with_columns((pl.col("name").str.len_bytes() == pl.col("name").str.len_chars()).alias("ascii"))
    )
    plain = frame.select(
        pl.when("ascii").then(pl.col("name").str.to_lowercase().str.replace_all("[^a-z0-9]+", " ").str.strip_chars(" "))
    )["name"]
    others = frame.filter(~pl.col("ascii"))["name"]
    if others.is_empty():
        return plain.alias(names.name)
    places = (~frame["ascii"]).arg_true()
    return plain.scatter(places, [folded(name) for name in others]).alias(names.name)


def singular_all(folded_names: pl.Series) -> pl.Series:
    """Return ``singular`` of every folded name."""
    name = pl.col("name")
    length = name.str.extract(r"([^ ]*)$").str.len_chars()

    def without(letters: int) -> pl.Expr:
        return name.str.head(-letters)

    def ends(endings: tuple[str, ...]) -> pl.Expr:
        return pl.any_horizontal(name.str.ends_with(ending) for ending in endings)

    return (
        folded_names.alias("name")
        .to_frame()
        .select(
            pl.when(name.str.ends_with("ies") & (length > 4))
            .then(pl.concat_str(without(3), pl.lit("y")))
            .when(ends(_ES_PLURALS))
            .then(without(2))
            .when(name.str.ends_with("s") & ~ends(_NO_PLURALS) & (length > 3))
            .then(without(1))
            .otherwise(name)
            .alias(folded_names.name)
        )
        .to_series()
    )
