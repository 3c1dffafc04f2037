"""Messages from JSON lines or CSV. Pure, but for the lines it is given."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import typer

from lonnymq import InvalidArgument, NewMessage
from lonnymq.calls.argument import MAX_CONTENT_BYTES
from lonnymq.cli import parse
from lonnymq.cli.words import counted

REQUIRED = ("channel", "payload")
OPTIONAL = ("at", "delay", "priority", "key", "max_attempts")


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


class Reader:
    """Messages, and the line that was read last: the one to name if a message is refused.

    Without a channel a row has `channel`, `payload` and options; with one, the row is the payload.
    """

    def __init__(self, lines: Iterable[bytes], form: Format, channel: str | None) -> None:
        self.line = 0
        self.count = 0
        self.is_done = False
        self._lines = lines
        self._form = form
        self._channel = channel

    def __iter__(self) -> Iterator[NewMessage]:
        rows = self._json_rows() if self._form is Format.JSONL else self._csv_rows()
        for row in rows:
            self.count += 1
            if self._channel is not None:
                yield NewMessage(channel=self._channel, payload=row)
            else:
                yield _message(row, self._form)
        self.is_done = True

    def located(self, error: Exception) -> InvalidArgument:
        """Return a refusal with the line it is due to."""
        # The line says more than the place among the messages.
        refusal = str(error).removeprefix(f"messages[{self.count - 1}]: ")
        is_of_a_line = self.line > 0 and not self.is_done
        return InvalidArgument(f"line {self.line}: {refusal}" if is_of_a_line else refusal)

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
                yield _parsed(text)

    def _csv_rows(self) -> Iterator[dict[str, str]]:
        header: list[str] | None = None
        # A cell may be as large as a message, and quotes are doubled in it.
        csv.field_size_limit(2 * MAX_CONTENT_BYTES)
        try:
            for cells in csv.reader(self._texts(), strict=True):
                if not cells:
                    continue
                if header is None:
                    header = [cell.strip() for cell in cells]
                    if len(set(header)) != len(header):
                        raise InvalidArgument(f"a column is named twice: {', '.join(header)}")
                    if self._channel is None:
                        _require_names(header)
                elif len(cells) != len(header):
                    raise InvalidArgument(
                        f"{counted(len(cells), 'cell')}, but {counted(len(header), 'column')}"
                    )
                else:
                    yield dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise InvalidArgument(f"not CSV: {error}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"not JSON: {error}") from None


def _message(row: Any, form: Format) -> NewMessage:
    if not isinstance(row, Mapping):
        raise InvalidArgument("no object with channel and payload; --channel takes whole lines as payloads")
    if form is Format.CSV:
        row = {name: cell for name, cell in row.items() if cell or name in REQUIRED}
        row["payload"] = _parsed(row["payload"])
    else:
        _require_names(row)
    given = {name: READ.get(name, _as_is)(value) for name, value in row.items()}
    return NewMessage(**given)


def _require_names(names: Iterable[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in (*REQUIRED, *OPTIONAL)]
    if missing:
        raise InvalidArgument(f"without {' and '.join(missing)}; --channel takes whole rows as payloads")
    if unknown:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        raise InvalidArgument(f"what is {', '.join(map(repr, unknown))}? known are {known}")


def _as_is(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    """CSV knows only text; what is no number is refused by whoever checks the value."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value


def _duration(value: Any) -> Any:
    return parse.duration(value) if isinstance(value, str) else value


def _instant(value: Any) -> Any:
    return parse.instant(value) if isinstance(value, str) else value


READ: dict[str, Callable[[Any], Any]] = {
    "at": _instant,
    "delay": _duration,
    "priority": _whole,
    "max_attempts": _whole,
}

# What a row may be refused with, here and where it is used.
REFUSED = (InvalidArgument, typer.BadParameter)
