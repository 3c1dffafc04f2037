"""Read messages from the lines of a JSON lines or CSV file."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import typer

from lonnymq import InvalidArgument, NewMessage
from lonnymq.calls.argument import MAX_CONTENT_BYTES
from lonnymq.cli import parse
from lonnymq.formatting import quantity

REQUIRED = ("channel", "payload")
OPTIONAL = ("at", "delay", "priority", "key", "max_attempts", "headers")


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


class MessageReader:
    """Yields messages, and knows the current line, so that an error can name it.

    Without a channel, a row has `channel`, `payload` and options; with one, the whole row is the payload.
    """

    def __init__(self, lines: Iterable[bytes], file_format: Format, channel: str | None) -> None:
        self.line = 0
        self.count = 0
        self.is_done = False
        self._lines = lines
        self._format = file_format
        self._channel = channel

    def __iter__(self) -> Iterator[NewMessage]:
        rows = self._json_rows() if self._format is Format.JSONL else self._csv_rows()
        for row in rows:
            self.count += 1
            if self._channel is not None:
                yield NewMessage(channel=self._channel, payload=row)
            else:
                yield _message(row, self._format)
        self.is_done = True

    def with_line(self, error: Exception) -> InvalidArgument:
        """Return the error with the line that caused it."""
        # The line number is more useful than the index of the message.
        reason = str(error).removeprefix(f"messages[{self.count - 1}]: ")
        has_line = self.line > 0 and not self.is_done
        return InvalidArgument(f"line {self.line}: {reason}" if has_line else reason)

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            self.line += 1
            try:
                text = line.decode("utf-8-sig" if self.line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InvalidArgument(f"not UTF-8 ({error.reason} at byte {error.start})") from None
            yield text

    def _json_rows(self) -> Iterator[Any]:
        for text in self._texts():
            if text.strip():
                yield _parse_json(text)

    def _csv_rows(self) -> Iterator[dict[str, str]]:
        header: list[str] | None = None
        # A cell may hold the largest content, in which every quote is doubled.
        csv.field_size_limit(2 * MAX_CONTENT_BYTES)
        try:
            for cells in csv.reader(self._texts(), strict=True):
                if not cells:
                    continue
                if header is None:
                    header = [cell.strip() for cell in cells]
                    if len(set(header)) != len(header):
                        raise InvalidArgument(f"duplicate column names: {', '.join(header)}")
                    if self._channel is None:
                        _require_names(header)
                elif len(cells) != len(header):
                    raise InvalidArgument(
                        f"{quantity(len(cells), 'cell')} for {quantity(len(header), 'column')}"
                    )
                else:
                    yield dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise InvalidArgument(f"not CSV: {error}") from None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"not JSON: {error}") from None


def _message(row: Any, file_format: Format) -> NewMessage:
    if not isinstance(row, Mapping):
        raise InvalidArgument(
            "a line must be an object with channel and payload; with --channel, whole lines are payloads"
        )
    if file_format is Format.CSV:
        row = {name: cell for name, cell in row.items() if cell or name in REQUIRED}
        row["payload"] = _parse_json(row["payload"])
    else:
        _require_names(row)
    given = {name: CONVERTERS.get(name, _unchanged)(value) for name, value in row.items()}
    return NewMessage(**given)


def _require_names(names: Iterable[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in (*REQUIRED, *OPTIONAL)]
    if missing:
        raise InvalidArgument(
            f"{' and '.join(missing)} missing; with --channel, whole lines or rows are payloads"
        )
    if unknown:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        raise InvalidArgument(f"unknown name {', '.join(map(repr, unknown))}; allowed are {known}")


def _unchanged(value: Any) -> Any:
    return value


def _integer(value: Any) -> Any:
    """Convert digits of CSV; other text is left for the check of the value, which refuses it."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value


def _duration(value: Any) -> Any:
    return parse.duration(value) if isinstance(value, str) else value


def _timestamp(value: Any) -> Any:
    return parse.timestamp(value) if isinstance(value, str) else value


def _headers(value: Any) -> Any:
    """Parse a cell of CSV, which is JSON."""
    return _parse_json(value) if isinstance(value, str) else value


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "at": _timestamp,
    "delay": _duration,
    "priority": _integer,
    "max_attempts": _integer,
    "headers": _headers,
}

# What an invalid row raises, here or in the client.
ROW_ERRORS = (InvalidArgument, typer.BadParameter)
