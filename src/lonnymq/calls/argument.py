"""Checks arguments before any round trip. Every error says which argument, its value, and what is allowed."""

import math
import unicodedata
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any
from uuid import UUID

from lonnymq.errors import invalid, invalid_kind
from lonnymq.model.page import PageCursor
from lonnymq.texts import abridge

MAX_CONTENT_BYTES = 67_108_864
MAX_DELAY_MS = 3_155_760_000_000
MAX_DEQUEUE_AT = 9_000_000_000_000_000
MAX_LEASE_MS = 86_400_000
MAX_ERROR_CHARACTERS = 10_000
MAX_INTEGER = 2_147_483_647
# How many messages a call can name, such as those to cancel.
MAX_NAMED = 1_000_000
MAX_BIGINT = 9_223_372_036_854_775_807
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def text(argument: str, value: Any, low: int = 0, high: int | None = None) -> str:
    """Return a text of `low` to `high` characters that PostgreSQL can store."""
    span = f"{low} to {high} characters" if high is not None else "a string"
    if not isinstance(value, str) or not low <= len(value) <= (high or len(value)):
        raise invalid(argument, value, span)
    if "\0" in value:
        raise invalid(argument, value, f"{span} without NUL, which PostgreSQL cannot store")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise invalid(argument, value, f"{span} that UTF-8 can encode (no lone surrogates)") from None
    return value


def channel(value: Any, argument: str = "channel") -> str:
    name = text(argument, value, 1, 255)
    if not name.isprintable() and any(unicodedata.category(character) == "Cc" for character in name):
        raise invalid(argument, value, "1 to 255 characters without control characters")
    return name


def lease(argument: str, value: Any) -> None:
    """Refuse what has no id and token."""
    if not (hasattr(value, "id") and hasattr(value, "token")):
        raise invalid(argument, value, "a leased message")


def cursor(argument: str, value: Any) -> PageCursor | None:
    if value is not None and not isinstance(value, PageCursor):
        raise invalid(argument, value, "a PageCursor, such as the `next` of a page")
    return value


def channels(argument: str, values: Any) -> list[str]:
    return [channel(one) for one in items(argument, values, "a sequence of names of channels")]


def optional_text(argument: str, value: Any, low: int = 0, high: int | None = None) -> str | None:
    return None if value is None else text(argument, value, low, high)


def error_text(value: Any) -> str | None:
    """Return an error as a text of bounded length without characters that PostgreSQL refuses."""
    if value is None:
        return None
    kept = abridge(str(value), MAX_ERROR_CHARACTERS).replace("\0", "\\x00")
    return abridge(kept.encode("utf-8", "backslashreplace").decode("utf-8"), MAX_ERROR_CHARACTERS)


def whole(argument: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise invalid(argument, value, f"a whole number between {low} and {high}")
    return int(value)


def optional_whole(argument: str, value: Any, low: int, high: int) -> int | None:
    return None if value is None else whole(argument, value, low, high)


def identifier(argument: str, value: Any) -> int:
    return whole(argument, value, -MAX_BIGINT - 1, MAX_BIGINT)


def uuid(argument: str, value: Any) -> UUID:
    if not isinstance(value, UUID):
        raise invalid(argument, value, "a uuid.UUID")
    return value


def uuids(argument: str, values: Any) -> list[UUID]:
    return [uuid(argument, one) for one in items(argument, values, "a sequence of uuid.UUID values")]


def seconds(argument: str, value: Any) -> float:
    """Return a duration in seconds; a number already is in seconds."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise invalid(argument, value, "a timedelta or a number of seconds, not negative")
    return float(value)


def seconds_between(argument: str, value: Any, low: float, high: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise invalid(argument, value, f"a number of seconds between {low:g} and {high:g}")
    return float(value)


def lease_ms(value: Any, low_s: float = 0.001) -> int:
    """Return the length of a lease in milliseconds."""
    return round(seconds_between("lease_s", value, low_s, MAX_LEASE_MS / 1000) * 1000)


def fraction(argument: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise invalid(argument, value, "a number between 0 and 1")
    return float(value)


def delay_ms(argument: str, value: Any) -> int | None:
    """Return a delay in milliseconds, rounded up, so that it never ends too early."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        milliseconds = -(-value // MILLISECOND)
    else:
        milliseconds = math.ceil(round(seconds(argument, value) * 1000, 6))
    if not 0 <= milliseconds <= MAX_DELAY_MS:
        raise invalid(argument, value, "a delay between 0 and 100 years")
    return milliseconds


def epoch_ms(argument: str, value: Any) -> int:
    """Return an instant as whole milliseconds since 1970, rounded down, as SQL's to_epoch() does."""
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise invalid(argument, value, "an aware datetime, such as datetime.now(UTC)")
    return (value - EPOCH) // MILLISECOND


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def instant_of_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def enum_value(argument: str, value: Any, kind: type[StrEnum]) -> str:
    """Return a value of an enumeration."""
    values = [member.value for member in kind]
    if value not in values:
        raise invalid(argument, value, f"one of {', '.join(values)}")
    return str(value)


def items(argument: str, values: Any, expected: str, most: int = MAX_NAMED, advice: str = "") -> list[Any]:
    """Return the items of an iterable, which may have no end."""
    try:
        given = None if isinstance(values, str | bytes) else iter(values)
    except TypeError:
        given = None
    if given is None:
        raise invalid_kind(argument, values, expected)
    found = list(islice(given, most + 1))
    if len(found) > most:
        raise invalid(argument, f"more than {most} {argument}", f"at most {most}{advice}")
    return found


def identifiers(argument: str, values: Any) -> list[int]:
    return [identifier(argument, one) for one in items(argument, values, "a sequence of whole numbers")]


def spread(argument: str, value: Any, values: Sequence[Any] | None, count: int) -> Sequence[Any]:
    """Return one value per message: `value` for all of them, or `values`."""
    if values is None:
        return [value] * count
    if value is not None:
        raise invalid(argument, value, f"absent if {argument}s are given")
    expected = f"a sequence with one value per message ({count})"
    # The items of these have no order, or are not the values.
    if isinstance(values, Mapping | Set):
        raise invalid_kind(f"{argument}s", values, expected)
    found = items(f"{argument}s", values, expected)
    if len(found) != count:
        raise invalid(f"{argument}s", f"{len(found)} values", expected)
    return found
