"""Parsing and formatting of durations, times, sizes, rate limits and contents."""

import logging
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer

from lonnymq import formatting
from lonnymq.cli import log, parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("250ms", 0.25), ("15m", 900), ("2d12h", 216_000), (" 1w ", 604_800)],
)
def test_a_duration_is_parsed(text: str, seconds: float) -> None:
    assert parse.duration(text) == timedelta(seconds=seconds)


def test_a_duration_that_is_a_default_is_not_parsed_again() -> None:
    """Some versions of typer parse defaults, others do not."""
    assert parse.duration(timedelta(minutes=1)) == timedelta(minutes=1)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1h 30m", "1y", "5 m", "h", "1e5", "9" * 40 + "w"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration"):
        parse.duration(text)


@pytest.mark.parametrize("text", ["", "now", "2030-01-01", "2030-01-01T00:00", "0001-01-01T00:00+14:00"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time"):
        parse.timestamp(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(0, "0ms"), (0.4, "400ms"), (3.21, "3.2s"), (5, "5s"), (59, "59s"), (60, "1m"), (192, "3m 12s")],
        *[(7200, "2h"), (7260, "2h 1m"), (90_000, "1d 1h"), (90 * 86_400, "90d"), (-5, "-5s")],
    ],
)
def test_a_duration_is_shown_in_two_units(seconds: float, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("interval_ms", "burst", "text"),
    [
        (100, 1, "10/s"),
        (1000, 5, "1/s, burst 5"),
        (5000, 1, "1 per 5s"),
        (None, 3, None),
        (3, 1, "1 per 3ms"),
    ],
)
def test_a_rate_limit_is_shown_per_second_or_per_interval(
    interval_ms: int | None, burst: int, text: str | None
) -> None:
    assert formatting.rate_limit(interval_ms, burst) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (64 << 20, "67 MB")]
)
def test_a_size_is_shown_with_its_unit(count: int, text: str) -> None:
    assert formatting.byte_size(count) == text


@pytest.mark.parametrize(
    ("content", "value", "text"),
    [
        (b'{"a": 1}', {"a": 1}, '{"a": 1}'),
        (b"plain", "plain", "plain"),
        (b"\xff\x00", {"base64": "/wA="}, "0xff00"),
        ("preview ü".encode()[:-1], {"base64": "cHJldmlldyDD"}, "preview "),
        # Python's json module accepts these, but they are not JSON.
        (b"[NaN]", "[NaN]", "[NaN]"),
        (b"-Infinity", "-Infinity", "-Infinity"),
        (b"1e999", "1e999", "1e999"),
        (None, None, None),
    ],
)
def test_contents_are_shown_as_json_text_or_bytes(
    content: bytes | None, value: Any, text: str | None
) -> None:
    assert formatting.content_json(content) == value
    assert formatting.content_text(content) == text


def test_values_are_converted_to_json() -> None:
    assert formatting.json_value(
        {"at": datetime(2030, 1, 1, tzinfo=UTC), "for": timedelta(seconds=2), "x": (b"1",)}
    ) == {
        "at": "2030-01-01T00:00:00Z",
        "for": 2.0,
        "x": [1],
    }


def test_a_worker_logs_in_utc_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.makeLogRecord({"msg": "done", "levelname": "INFO", "created": 0.25, "msecs": 250.0})
    try:
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("TZ", "America/Chicago")
            time.tzset()
            expected = f"1970-01-01 00:00:00.250Z INFO    [{os.getpid()}] done"
            assert log.TextFormatter().format(record) == expected
            assert '"1970-01-01T00:00:00.250+00:00"' in log.JsonFormatter().format(record)
    finally:
        time.tzset()
