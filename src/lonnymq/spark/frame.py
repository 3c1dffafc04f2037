"""Which frames can be written: the names and types of their columns, checked on the driver."""

from typing import TYPE_CHECKING

from lonnymq.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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


def require(schema: "StructType") -> None:
    """Refuse a frame that cannot become messages: one error that says all that is wrong."""
    problems = [f"column {name} is missing" for name in REQUIRED if name not in schema.names]
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if field.name not in COLUMNS:
            problems.append(f"column {field.name} is not one of {', '.join(COLUMNS)}")
        elif kind.partition("<")[0] not in COLUMNS[field.name]:
            problems.append(f"column {field.name} is {kind}, and must be {' or '.join(COLUMNS[field.name])}")
    if len(set(schema.names)) < len(schema.names):
        problems.append("a column is there twice")
    if problems:
        raise InvalidArgument(f"this frame cannot be written to the queue: {'; '.join(problems)}")
