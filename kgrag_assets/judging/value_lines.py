"""What a prompt says of an attribute's sample values, by what may leave this machine."""

from __future__ import annotations

from kgrag_assets.judging.masking import is_personal_column, masked, shape_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import name_words, text_words

SAMPLES = 3
# A column of more different values than these, nearly all of them different, tells rows apart: people, often.
FEW_VALUES, UNIQUE = 20, 0.9
# Changes with what is shown of a value.
VALUES_VERSION = "values-2"


def value_lines(attribute: Attribute, policy: str) -> list[str]:
    """Write the prompt's lines about the sample values of an attribute; none where it has none.

    Args:
        attribute: the attribute.
        policy: ``shapes`` shows the shapes of at most three values, ``masked`` at most three values with all that
            looks personal masked, ``local`` nothing that is derived from a value.

    Raises:
        ValueError: another policy.
    """
    if policy == "local":
        return []
    if policy == "shapes":
        written = "shapes of some values (A letter, 9 digit)"
        values = [shape_of(value) for value in attribute.sample_values]
    elif policy == "masked":
        written = "some values (personal ones as A letter, 9 digit)"
        personal = _identifies(attribute) or is_personal_column(
            name_words(attribute.column_name), text_words(attribute.column_description)
        )
        values = [masked(value, personal=personal) for value in attribute.sample_values]
    else:
        raise ValueError(f"unknown policy {policy!r}: use shapes, masked or local")
    # In an order of their own: of values that are about as frequent, a few more rows would turn the order around.
    distinct = sorted([value for value in dict.fromkeys(values) if value][:SAMPLES])
    return [f"{written}: {' | '.join(distinct)}"] if distinct else []


def _identifies(attribute: Attribute) -> bool:
    profile, distinct = attribute.profile, attribute.distinct_count
    unique = profile is not None and profile.uniqueness is not None and profile.uniqueness >= UNIQUE
    return bool(attribute.is_primary_key) or (unique and distinct is not None and distinct > FEW_VALUES)
