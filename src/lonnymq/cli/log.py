"""A worker's log on stderr: text for people, or JSON for programs."""

import logging
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum

from lonnymq.formatting import json_value
from lonnymq.quoting import json_line
from lonnymq.texts import escape_hidden

# Attributes that every record has; others were passed as `extra`.
STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class TextFormatter(logging.Formatter):
    """Text with time and process id; the time is UTC, as everywhere in the command line."""

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s [%(process)d] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Escape the whole line: messages of other libraries and tracebacks may contain untrusted text too.
        return escape_hidden(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the fields passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in STANDARD_ATTRIBUTES},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json_line(json_value(line))


def start_logging(level: str, log_format: LogFormat) -> None:
    """Log to stderr from this level on; other libraries log warnings and errors only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
    logging.getLogger("lonnymq").setLevel(level.upper())
