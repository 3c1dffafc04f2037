"""Parse what users type: durations, times, payloads."""

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import typer

PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = "DURATION"
TIMESTAMP = "TIME"
DAY = "DAY"


def duration(given: str | timedelta) -> timedelta:
    """Parse 90, 90s, 1.5h, 2d12h; a bare number is seconds. An option's default is returned as it is."""
    # From version 0.29.1 on, typer parses defaults too.
    if isinstance(given, timedelta):
        return given
    text = given.strip()
    try:
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return timedelta(seconds=float(text))
        parts = PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return timedelta(seconds=sum(float(number) * SECONDS[unit] for number, unit in parts))
    except OverflowError:
        pass
    raise typer.BadParameter(f"{text!r} is not a duration: write 90, 90s, 15m, 1.5h or 2d12h")


def timestamp(text: str) -> datetime:
    """Parse ISO 8601 with a UTC offset: 2030-01-31T09:00Z."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(
        f"{text!r} is not a time: write ISO 8601 with UTC offset, 2030-01-31T09:00Z or 2030-01-31T09:00+02:00"
    )


def day(text: str) -> date:
    """Parse a day: 2030-01-31."""
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").date()
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day: write 2030-01-31") from None


def payload(text: str, *, is_text: bool) -> Any:
    """Parse a payload as JSON; with `is_text`, return it as a string."""
    if is_text:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(
            f"the payload is not JSON ({error}): quote it for the shell, or use --text to send it as a string"
        ) from None


def payload_or_stdin(text: str, *, is_text: bool) -> Any:
    """Parse a payload, or return the bytes on stdin if it is "-"."""
    return sys.stdin.buffer.read() if text == "-" else payload(text, is_text=is_text)


def headers(texts: Sequence[str]) -> dict[str, str]:
    """Parse NAME=VALUE; the value may contain another "="."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{text!r} is not a header: write --header NAME=VALUE")
        if name in found:
            raise typer.BadParameter(f"header {name!r} was given twice: a message has each header once")
        found[name] = value
    return found
