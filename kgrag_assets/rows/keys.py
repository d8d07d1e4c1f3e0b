"""Hashes that identify rows: what belongs here turns values into keys, and keys into a data version."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence

Part = str | bytes | int | float | bool | None | Sequence["Part"] | Mapping[str, "Part"]

KEY_BYTES = 16


def _feed(digest: hashlib.blake2b, part: Part) -> None:
    # Each value is written as a type tag and a length before its bytes, so that ("ab", "c") and
    # ("a", "bc"), or None and "None", can never meet in one hash.
    if part is None:
        digest.update(b"n")
    elif isinstance(part, bool):
        digest.update(b"t" if part else b"f")
    elif isinstance(part, int):
        raw = str(part).encode()
        digest.update(b"i" + struct.pack("<Q", len(raw)) + raw)
    elif isinstance(part, float):
        digest.update(b"d" + struct.pack("<d", part))
    elif isinstance(part, str):
        # surrogatepass: a lone surrogate in somebody's file is a value like any other.
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"s" + struct.pack("<Q", len(raw)) + raw)
    elif isinstance(part, bytes):
        # Apart: joining would copy blocks of many megabytes.
        digest.update(b"b" + struct.pack("<Q", len(part)))
        digest.update(part)
    elif isinstance(part, Mapping):
        digest.update(b"m" + struct.pack("<Q", len(part)))
        for name in sorted(part):
            _feed(digest, name)
            _feed(digest, part[name])
    elif isinstance(part, Sequence):
        items = list(part)
        digest.update(b"l" + struct.pack("<Q", len(items)))
        for item in items:
            _feed(digest, item)
    else:
        raise TypeError(f"cannot be part of a key: {type(part).__name__}")


def key_of(*parts: Part) -> str:
    """Hash values into one key.

    Args:
        parts: strings, bytes, numbers, booleans, None, or sequences and mappings of these, to any depth.

    Returns:
        32 hexadecimal digits: a 16-byte blake2b over type-tagged, length-prefixed values, so that no
        two different lists of parts are written alike.

    Raises:
        TypeError: a part is of another type.
    """
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def text_key(*parts: str | None) -> str:
    """Hash texts into one key, in a way that SQL can do for millions of rows (``text_key_sql``).

    Returns:
        32 hexadecimal digits: the first half of a SHA-256 over length-prefixed parts, so that no two different
        lists of parts are written alike.
    """
    raw = [b"n" if part is None else b"%d:%b" % (len(encoded := part.encode()), encoded) for part in parts]
    return hashlib.sha256(b"".join(raw)).hexdigest()[: 2 * KEY_BYTES]


def text_key_sql(*expressions: str) -> str:
    """Return the DuckDB expression of ``text_key`` over text expressions (our own column names and literals)."""
    written = [f"CASE WHEN {one} IS NULL THEN 'n' ELSE concat(strlen({one}), ':', {one}) END" for one in expressions]
    return f"left(sha256(concat({', '.join(written)})), {2 * KEY_BYTES})"


def data_version_of(row_keys: Iterable[str]) -> str:
    """Hash the row keys of a partition, in any order, into its data version.

    Args:
        row_keys: the keys of all rows.

    Returns:
        32 hexadecimal digits; equal for equal sets of rows, whatever their order.
    """
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for key in sorted(row_keys):
        _feed(digest, key)
    return digest.hexdigest()


def attribute_id_of(side: str, table_name: str, column_name: str) -> str:
    """Identify an attribute within a task: ``side`` is ``source`` or ``target``, names exactly as given."""
    return key_of("attribute", side, table_name, column_name)


def pair_id_of(source_attribute_id: str, target_attribute_id: str) -> str:
    """Identify a candidate pair by the ids of its two attributes."""
    return key_of("pair", source_attribute_id, target_attribute_id)
