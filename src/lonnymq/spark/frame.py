"""Which frames can be written: the names and types of their columns, checked on the driver."""

import re
from typing import TYPE_CHECKING

from lonnymq.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import DataType, StructType

WHOLE = ("tinyint", "smallint", "int", "bigint")
NESTED = ("struct", "map", "array")
# The types that a column may have, as Spark's words for them begin.
COLUMNS = {
    "channel": ("string",),
    "content": ("binary", "string", *NESTED),
    "dequeue_at": ("timestamp", *WHOLE),
    "delay_ms": WHOLE,
    "priority": WHOLE,
    "key": ("string",),
    "max_attempts": WHOLE,
}
REQUIRED = ("channel", "content")
TIMES = ("date", "time", "timestamp", "timestamp_ntz")
# What JSON can hold, or a text for it; and what can be a name in it.
JSON = ("void", "boolean", *WHOLE, "float", "double", "decimal", "string", "binary", *TIMES, *NESTED)
JSON_NAMES = ("string", *WHOLE, *TIMES)


def require(schema: "StructType") -> None:
    """Refuse a frame that cannot become messages: one error that says all that is wrong."""
    problems = [f"column {name} is missing" for name in REQUIRED if name not in schema.names]
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if field.name not in COLUMNS:
            problems.append(f"column {field.name} is not one of {', '.join(COLUMNS)}")
        elif _head(field.dataType) not in COLUMNS[field.name]:
            problems.append(f"column {field.name} is {kind}, and must be {' or '.join(COLUMNS[field.name])}")
        else:
            problems += _beyond_json(field.name, field.dataType)
    if len(set(schema.names)) < len(schema.names):
        problems.append("a column is there twice")
    if problems:
        raise InvalidArgument(f"this frame cannot be written to the queue: {'; '.join(problems)}")


def _head(kind: "DataType") -> str:
    """Return the first word of a type: decimal of decimal(10,2), string of one with a collation."""
    return re.split(r"[<( ]", kind.simpleString(), maxsplit=1)[0]


def _beyond_json(place: str, kind: "DataType") -> "Iterator[str]":
    """Say what is inside a nested column that JSON cannot hold."""
    if _head(kind) not in JSON and place != "content":
        yield f"{place} is {kind.simpleString()}, which JSON does not know"
    for field in getattr(kind, "fields", ()):
        yield from _beyond_json(f"{place}.{field.name}", field.dataType)
    for inner in ("elementType", "valueType"):
        if hasattr(kind, inner):
            yield from _beyond_json(f"{place}[]", getattr(kind, inner))
    if hasattr(kind, "keyType") and _head(kind.keyType) not in JSON_NAMES:
        yield f"{place} has keys of {kind.keyType.simpleString()}, and JSON has names only"
