"""Format values: as text for people, and as JSON values for programs."""

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
# The Gregorian calendar repeats after this many years.
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097


def one_line(text: str, max_length: int = 80) -> str:
    """Return the text on one line, cut if it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def last_line(error: str | None) -> str | None:
    """Return the line of a traceback that names the error."""
    lines = (error or "").strip().splitlines()
    return lines[-1] if lines else None


def duration(seconds: float) -> str:
    """Format a duration in its two largest units: 3m 12s."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    whole = int(seconds)
    for place, (size, name) in enumerate(UNITS):
        if whole >= size:
            rest = whole % size
            smaller, smaller_name = UNITS[place + 1] if place + 1 < len(UNITS) else (1, "s")
            return (
                f"{whole // size}{name} {rest // smaller}{smaller_name}"
                if rest >= smaller
                else f"{whole // size}{name}"
            )
    return f"{whole}s" if seconds >= 10 else f"{seconds:.1f}".removesuffix(".0") + "s"


def headers_text(headers: Mapping[str, str]) -> str | None:
    """Return one line per header; None if there are none."""
    return "\n".join(f"{name}={value}" for name, value in headers.items()) or None


def timestamp(at: datetime | None) -> str | None:
    """Format a time in UTC, to the second."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def timestamp_ms(milliseconds: int) -> str:
    """Format milliseconds since 1970 like `timestamp`; the year may exceed 9999."""
    days, rest = divmod(milliseconds // 1000, 86_400)
    cycles, day = divmod(days + date(1970, 1, 1).toordinal() - 1, CYCLE_DAYS)
    at = datetime.combine(date.fromordinal(day + 1), datetime.min.time()) + timedelta(seconds=rest)
    return f"{at.year + cycles * CYCLE_YEARS:04d}-{at:%m-%d %H:%M:%S}Z"


def timestamp_with_age(at: datetime | None, now: datetime) -> str | None:
    """Format a time and its distance from now."""
    if at is None:
        return None
    seconds = (now - at).total_seconds()
    return (
        f"{timestamp(at)}  ({duration(seconds)} ago)"
        if seconds >= 0
        else f"{timestamp(at)}  (in {duration(-seconds)})"
    )


def quantity(count: int, thing: str) -> str:
    """Format a number of things: 1 message, 2,000 messages."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def at_least(count: int, *, is_complete: bool) -> str:
    """Format a number of which there may be more: 2,000+."""
    return f"{count:,}" if is_complete else f"{count:,}+"


def byte_size(count: int) -> str:
    """Format a number of bytes: 1.5 kB."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def rate_limit(interval_ms: int | None, burst: int) -> str | None:
    """Format a rate limit: 10/s, or 1 per 5s, and its burst."""
    if interval_ms is None:
        return None
    rate = (
        f"{1000 / interval_ms:g}/s"
        if interval_ms <= 1000 and 1000 % interval_ms == 0
        else f"1 per {duration(interval_ms / 1000)}"
    )
    return f"{rate}, burst {burst}" if burst > 1 else rate


def content_json(data: bytes | None) -> Any:
    """Return bytes like bytes_as_json() in SQL: JSON as JSON, other text as a string, the rest as base64."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=_parse_finite)
    except (ValueError, RecursionError):
        return text


def _reject_constant(constant: str) -> float:
    """Reject NaN and infinities, which Python reads and writes but JSON does not allow."""
    raise ValueError(constant)


def _parse_finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _reject_constant(text)


def content_text(data: bytes | None) -> str | None:
    """Return bytes as text if they are UTF-8, otherwise in hexadecimal."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # A preview may end inside a multi-byte character.
        if len(data) > 4:
            for end in (-1, -2, -3):
                try:
                    return data[:end].decode("utf-8")
                except UnicodeDecodeError:
                    continue
        return "0x" + data.hex()


def content_with_size(data: bytes | None, size: int) -> str:
    """Format a content below its full size; it may be a preview."""
    return f"{byte_size(size)}\n{content_text(data)}"


def json_value(value: Any) -> Any:
    """Convert a value to what the json module can write."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return content_json(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value
