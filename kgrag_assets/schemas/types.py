"""Which family a data type belongs to: the names that PostgreSQL, MySQL, SQL Server, Oracle, DuckDB and SQLite use."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FAMILIES: dict[str, str] = {
    name: family
    for family, names in {
        "integer": "int integer bigint smallint tinyint mediumint hugeint uhugeint ubigint uinteger usmallint utinyint "
        "int1 int2 int4 int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 long_integer serial bigserial "
        "smallserial serial2 serial4 serial8 year oid signed counter byte short",
        "decimal": "decimal numeric number dec fixed float float4 float8 double real money smallmoney "
        "binary_float binary_double bignum float16 float32 float64",
        "text": "text varchar varchar2 nvarchar nvarchar2 char nchar bpchar character string str tinytext mediumtext "
        "longtext ntext clob nclob enum set uuid uniqueidentifier xml citext name sysname long inet cidr "
        "macaddr rowid urowid large_string utf8 object category varying",
        "date": "date date32 date64",
        "time": "time timetz time_ns",
        "timestamp": "timestamp timestamptz timestampltz timestampntz datetime datetime2 smalldatetime datetimeoffset "
        "timestamp_s timestamp_ms timestamp_ns timestamp_us",
        "boolean": "boolean bool bit logical",
        "binary": "binary varbinary blob tinyblob mediumblob longblob bytea bytes raw image bfile rowversion",
        "json": "json jsonb struct map list array variant union row super",
    }.items()
    for name in names.split()
}

# Words before the name of the type itself.
_QUALIFIERS = frozenset({"pg_catalog", "unsigned", "national", "nullable", "native", "sys", "public"})
# Types whose first word alone would mislead.
_SPECIAL = (
    (re.compile(r"tinyint\s*\(\s*1\s*\)"), "boolean"),
    (re.compile(r"bit\s*(varying\b|\(\s*([2-9]|\d{2,}))"), "binary"),
    (re.compile(r"long\s+raw\b"), "binary"),
    (re.compile(r"(binary|double)\s+large\b"), "binary"),
)

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ARGUMENTS = re.compile(r"\(\s*(\d+|\*)\s*(?:,\s*(-?\d+)\s*)?\)")

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,18})")
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|0|[1-9]\d*)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?")
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?")
_BOOLEAN = frozenset({"true", "false", "t", "f"})


def _exact_numeric(data_type: str) -> str:
    # A scale of 0, written or implied by a lone precision, leaves whole numbers: Oracle has no other integers.
    arguments = _ARGUMENTS.search(data_type)
    if arguments is None:
        return "decimal"
    return "integer" if int(arguments.group(2) or 0) <= 0 else "decimal"


def _of_name(data_type: str) -> str:
    text = data_type.strip().lower()
    if text.endswith("[]") or re.search(r"[\w)]\[\d*\]$", text):
        return "json"
    text = text.strip('"`[]')
    words = _NAME.findall(re.sub(r"\(.*?\)", " ", text))
    while len(words) > 1 and words[0] in _QUALIFIERS:
        words = words[1:]
    name = words[0] if words else ""
    if name in {"decimal", "numeric", "number", "dec"}:
        return _exact_numeric(text)
    special = next((family for pattern, family in _SPECIAL if pattern.match(text)), None)
    return special or _FAMILIES.get(name, "unknown")


def _of_samples(samples: Sequence[str]) -> str:
    values = [value.strip() for value in samples if value.strip()]
    if not values:
        return "unknown"
    tests = (
        ("integer", _INTEGER.fullmatch),
        ("decimal", _DECIMAL.fullmatch),
        ("date", _DATE.fullmatch),
        ("timestamp", _TIMESTAMP.fullmatch),
        ("time", _TIME.fullmatch),
    )
    for family, matches in tests:
        if all(matches(value) for value in values):
            return family
    return "boolean" if all(value.lower() in _BOOLEAN for value in values) else "text"


def type_family(data_type: str, samples: Sequence[str] = ()) -> str:
    """Name the family of a data type.

    Args:
        data_type: the type as the input writes it, in any of the dialects, e.g. ``NUMBER(10)`` or
            ``timestamp with time zone``; may be empty.
        samples: values as text; they decide only where the type's name does not. A code with a leading
            zero (``007``) is text.

    Returns:
        One of ``rows.schema_attributes.TYPE_FAMILIES``; ``unknown`` where neither says anything.
    """
    family = _of_name(data_type)
    return family if family != "unknown" else _of_samples(samples)
