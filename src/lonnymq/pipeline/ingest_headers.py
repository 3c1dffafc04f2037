"""Headers of messages from a column: an object, a map, or the same as JSON text."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

MAX_BYTES = 8192
MAX_NAME_LENGTH = 255
CONTROL = r"[\x00-\x1f\x7f-\x9f]"
# Its value names a channel.
ON_BURIED = "lonnymq-on-buried"


def read_headers(rows: DataFrame, name: str) -> Column:
    """Return a column as a map of strings, without nulls; null if it is not an object."""
    column = f.col(f"`{name.replace('`', '``')}`")
    if rows.schema[name].dataType.typeName() != "string":
        column = f.to_json(column)
    found = f.from_json(column, "map<string, string>")
    return f.map_filter(found, lambda _, value: value.isNotNull())


def headers_problem(headers: Column) -> Column:
    """Return why the queue would refuse these headers; null if it would not."""
    # The queue counts a space after each colon and comma, which Spark does not write.
    size = f.octet_length(f.to_json(headers)) + 2 * f.size(headers)
    channel = headers[ON_BURIED]
    names = f.exists(f.map_keys(headers), lambda name: ~_is_name(name))
    values = f.exists(f.map_values(headers), lambda value: value.contains("\0"))
    return (
        f.when(size > MAX_BYTES, f.lit(f"the headers have more than {MAX_BYTES} bytes"))
        .when(names, f.lit("a header's name is empty, too long, or has a control character"))
        .when(values, f.lit("a header contains NUL"))
        .when(channel.isNotNull() & ~_is_name(channel), f.lit(f"{ON_BURIED} is not a channel"))
    )


def _is_name(text: Column) -> Column:
    return f.length(text).between(1, MAX_NAME_LENGTH) & ~text.rlike(CONTROL)
