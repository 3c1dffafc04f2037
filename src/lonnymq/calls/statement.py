"""A call: a statement, its parameters as PostgreSQL expects them, and a decoder for the reply."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from itertools import count
from typing import Any, Generic, LiteralString, TypeVar

from psycopg import sql

Result = TypeVar("Result")
Rows = list[tuple[Any, ...]]

# Numbers are sent as text: psycopg would pick a type by size, and prepare the statement once per type.
LITERAL_TYPES = {"bigint", "integer"}
LITERAL_ARRAY_TYPES = {"bigint[]", "integer[]", "uuid[]"}
# Arrays of numbers with nulls. Not array literals: with array_nulls off, PostgreSQL reads NULL as a string.
NULLABLE_ARRAY_TYPES = {"bigint?[]", "integer?[]", "real?[]"}
# Includes text[] for the same reason: in an array literal a null could become the string "NULL".
BINARY_TYPES = {"bytea", "bytea[]", "text[]", "text[]::jsonb[]"}
PLACEHOLDER = re.compile(r"%[tb]::(\w+(?:\[\])?)")


class Style(Enum):
    """The placeholders that a driver other than psycopg expects."""

    FORMAT = "%s"
    NUMBERED = "$1"


@dataclass(frozen=True)
class Statement:
    """SQL with `{schema}` for the quoted schema, and `{literal}` for the same inside a string literal."""

    name: str
    template: str
    types: tuple[str, ...] = ()

    def text(self, schema: str) -> LiteralString:
        return _text(self.template, schema)

    def text_in_style(self, schema: str, style: Style) -> str:
        """Return the text for a driver other than psycopg. Without parameters, `%` is not doubled."""
        return _text_in_style(self.template, schema, style)


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One operation, ready to be executed. `is_repeatable`: it is safe to repeat after a lost connection."""

    statement: Statement
    values: tuple[Any, ...]
    decode: Callable[[Rows], Result]
    is_repeatable: bool = True
    # Whether this result, on a retry, may be the effect of the first attempt.
    is_unsure: Callable[[Result], bool] = lambda result: False
    # Returns the call that reverts the effect, for a caller that was cancelled and never saw the result.
    undo: "Callable[[Result], Call[Any] | None] | None" = None


def function(name: str, returns: str = "*", where: str = "", **parameters: str) -> Statement:
    """Return the statement that calls a function of the queue: columns to read, and types of parameters."""
    arguments = ", ".join(f"{parameter} => {_argument(kind)}" for parameter, kind in parameters.items())
    template = f"select {returns} from {{schema}}.{name}({arguments})" + (f" where {where}" if where else "")
    return Statement(name, template, tuple(parameters.values()))


def placeholder(kind: str) -> str:
    return "%b" if kind in BINARY_TYPES else "%t"


def _argument(kind: str) -> str:
    if kind in NULLABLE_ARRAY_TYPES:
        return f"string_to_array(%t::text, ',', '-')::{kind.replace('?', '')}"
    return f"{placeholder(kind)}::{kind}"


def call(
    statement: Statement,
    *values: Any,
    decode: Callable[[Rows], Result],
    is_repeatable: bool = True,
    is_unsure: Callable[[Result], bool] = lambda result: False,
) -> Call[Result]:
    dumped = tuple(dump(kind, value) for kind, value in zip(statement.types, values, strict=True))
    return Call(statement, dumped, decode, is_repeatable, is_unsure)


def dump(kind: str, value: Any) -> Any:
    """Return a value in the form that is sent for a parameter of that type."""
    if value is None:
        return None
    if kind in LITERAL_TYPES:
        return str(value)
    if kind in LITERAL_ARRAY_TYPES:
        return "{" + ",".join(map(str, value)) + "}"
    if kind in NULLABLE_ARRAY_TYPES:
        # "-" alone is not a number, so it stands for null.
        return ",".join("-" if item is None else str(item) for item in value)
    if kind == "jsonb":
        # A string is JSON already.
        return value if isinstance(value, str) else json.dumps(value)
    if kind.endswith("[]"):
        return list(value)
    return value


def array(values: Iterable[Any]) -> list[Any] | None:
    """Return an optional array argument: None if all elements are None."""
    items = list(values)
    return items if any(item is not None for item in items) else None


def pick(values: Sequence[Any], indexes: Iterable[int]) -> list[Any]:
    return [values[index] for index in indexes]


def nothing(rows: Rows) -> None:
    return None


def scalar(rows: Rows) -> Any:
    return rows[0][0]


def in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its instants converted to UTC, whatever the session's time zone.

    Python subtracts two datetimes of one zone by their wall clocks, which is wrong by an hour across a change
    to daylight saving time.
    """
    return tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row)


def from_json(value: Any) -> Any:
    """Return a JSON value, which some drivers return as text."""
    return json.loads(value) if isinstance(value, str) else value


@lru_cache(maxsize=1024)
def _text(template: str, schema: str) -> LiteralString:
    quoted = sql.Identifier(schema).as_string(None).replace("%", "%%")
    return _fill_in(template, quoted)


@lru_cache(maxsize=1024)
def _text_in_style(template: str, schema: str, style: Style) -> str:
    quoted = sql.Identifier(schema).as_string(None)
    if style is Style.FORMAT:
        template, found = PLACEHOLDER.subn(r"%s::\1", template)
        return _fill_in(template, quoted.replace("%", "%%") if found else quoted)
    numbers = count(1)
    return _fill_in(PLACEHOLDER.sub(lambda match: f"${next(numbers)}::{_typed(match[1])}", template), quoted)


def _typed(kind: str) -> str:
    """Return the cast of a numbered parameter: a value that is sent as text must be declared as text."""
    is_text = kind in LITERAL_TYPES or kind in LITERAL_ARRAY_TYPES or kind == "jsonb"
    return f"text::{kind}" if is_text else kind


def _fill_in(template: str, quoted: str) -> str:
    return template.format(schema=quoted, literal=quoted.replace("'", "''"))
