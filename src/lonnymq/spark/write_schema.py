"""Checks on the driver, by column names and types, whether a frame can be written to the queue.

As elsewhere in Spark, upper and lower case of names are the same.
"""

import re
from typing import TYPE_CHECKING

from lonnymq.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import DataType, StructType

WHOLE = ("tinyint", "smallint", "int", "bigint")
NESTED = ("struct", "map", "array")
# The types that a column may have: the first word of Spark's name for each.
COLUMNS = {
    "channel": ("string",),
    "content": ("binary", "string", *NESTED),
    "dequeue_at": ("timestamp", *WHOLE),
    "delay_ms": WHOLE,
    "priority": WHOLE,
    "key": ("string",),
    "max_attempts": WHOLE,
    "headers": ("map", "string"),
}
REQUIRED = ("channel", "content")
TIMES = ("date", "time", "timestamp", "timestamp_ntz")
# Types that become JSON values, directly or as text; and types that become names of JSON members.
JSON = ("void", "boolean", *WHOLE, "float", "double", "decimal", "string", "binary", *TIMES, *NESTED)
JSON_NAMES = ("string", *WHOLE, *TIMES)


def check_schema(schema: "StructType") -> None:
    """Raise one error that lists everything that prevents a frame from becoming messages."""
    names = [name.lower() for name in schema.names]
    problems = [f"column {name} is missing" for name in REQUIRED if name not in names]
    for name, field in zip(names, schema.fields, strict=True):
        kind = field.dataType.simpleString()
        if name not in COLUMNS:
            problems.append(f"column {field.name} is unknown: columns are {', '.join(COLUMNS)}")
        elif _base_type(field.dataType) not in COLUMNS[name]:
            problems.append(f"column {name} is {kind}; it must be {' or '.join(COLUMNS[name])}")
        else:
            problems += _not_json(name, field.dataType)
    if len(set(names)) < len(names):
        problems.append("a column name occurs twice; upper and lower case are the same")
    if problems:
        raise InvalidArgument(f"this DataFrame cannot be written to the queue: {'; '.join(problems)}")


def _base_type(kind: "DataType") -> str:
    """Return the first word of a type's name: decimal for decimal(10,2), string for a collated string."""
    return re.split(r"[<( ]", kind.simpleString(), maxsplit=1)[0]


def _not_json(path: str, kind: "DataType") -> "Iterator[str]":
    """Yield a problem for each part of a nested column that JSON cannot represent."""
    if _base_type(kind) not in JSON and path != "content":
        yield f"{path} is {kind.simpleString()}, which JSON cannot represent"
    for field in getattr(kind, "fields", ()):
        yield from _not_json(f"{path}.{field.name}", field.dataType)
    for inner in ("elementType", "valueType"):
        if hasattr(kind, inner):
            yield from _not_json(f"{path}[]", getattr(kind, inner))
    if hasattr(kind, "keyType") and _base_type(kind.keyType) not in JSON_NAMES:
        yield f"{path} has keys of type {kind.keyType.simpleString()}, which cannot be names in JSON"
