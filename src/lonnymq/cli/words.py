"""Values in words: for people, and as plain JSON for programs. Pure."""

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
# The calendar repeats itself.
CALENDAR_YEARS, CALENDAR_DAYS = 400, 146_097


def one_line(text: str, most: int = 80) -> str:
    """Return the text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def span(seconds: float) -> str:
    """Return a duration in its two largest units: 3m 12s."""
    if seconds < 0:
        return "-" + span(-seconds)
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


def instant(at: datetime | None) -> str | None:
    """Return an instant in UTC, to the second."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def moment(milliseconds: int) -> str:
    """Return a number of milliseconds since 1970 as `instant` does; its year may be beyond 9999."""
    days, rest = divmod(milliseconds // 1000, 86_400)
    cycles, day = divmod(days + date(1970, 1, 1).toordinal() - 1, CALENDAR_DAYS)
    at = datetime.combine(date.fromordinal(day + 1), datetime.min.time()) + timedelta(seconds=rest)
    return f"{at.year + cycles * CALENDAR_YEARS:04d}-{at:%m-%d %H:%M:%S}Z"


def ago(at: datetime | None, now: datetime) -> str | None:
    """Return an instant and how far it is from now."""
    if at is None:
        return None
    seconds = (now - at).total_seconds()
    return (
        f"{instant(at)}  ({span(seconds)} ago)" if seconds >= 0 else f"{instant(at)}  (in {span(-seconds)})"
    )


def counted(count: int, thing: str) -> str:
    """Return a number of things: 1 message, 2,000 messages."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def size(count: int) -> str:
    """Return a number of bytes as people read it."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def limit(interval_ms: int | None, burst: int) -> str | None:
    """Return a rate limit: 10/s, or 1 per 5s, and its burst."""
    if interval_ms is None:
        return None
    rate = (
        f"{1000 / interval_ms:g}/s"
        if interval_ms <= 1000 and 1000 % interval_ms == 0
        else f"1 per {span(interval_ms / 1000)}"
    )
    return f"{rate}, burst {burst}" if burst > 1 else rate


def content(data: bytes | None) -> Any:
    """Return bytes as bytes_as_json() does: JSON as JSON, other text as a string, anything else in base64."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _refused(constant: str) -> float:
    """NaN and its kin: Python reads and writes them, JSON does not know them."""
    raise ValueError(constant)


def _finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _refused(text)


def content_text(data: bytes | None) -> str | None:
    """Return bytes as a person reads them: text as it is, anything else by its first bytes."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # A preview may end in the middle of a character.
        if len(data) > 4:
            for end in (-1, -2, -3):
                try:
                    return data[:end].decode("utf-8")
                except UnicodeDecodeError:
                    continue
        return "0x" + data.hex()


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return content(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
