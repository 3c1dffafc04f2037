"""What a worker logs, on stderr: lines for people, or JSON for machines."""

import logging
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum

from lonnymq.cli.quoting import json_text
from lonnymq.cli.words import plain
from lonnymq.texts import visible

# What every record has; the rest was given by whoever logged it.
USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class TextFormatter(logging.Formatter):
    """A line for people, with its process; its time is UTC, as everywhere in the command line."""

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s [%(process)d] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Also what other libraries say, and tracebacks: all of it may hold strangers' words.
        return visible(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what came with it."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in USUAL},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json_text(plain(line))


def start_logging(level: str, form: LogFormat) -> None:
    """Log to stderr from that level on; other libraries from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
    logging.getLogger("lonnymq").setLevel(level.upper())
