"""Errors of Spark as one sentence: their texts have stack traces of two languages, with anything in them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lonnymq.errors import LonnyError

MAX_LENGTH = 500
# An error of LonnyMQ in a Python process of Spark's, and one of Spark's own.
OURS = re.compile(r"\blonnymq(?:\.\w+)+: (.+)")
CONDITION = re.compile(r"\[[A-Z][A-Z_.0-9]+\] .+")
CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)")
OTHER = re.compile(r"\w(?:Exception|Error): (.+)")


class SparkFailed(LonnyError):
    """A job of Spark failed; a step that is repeated continues, or begins again, without repeating rows."""


def summary_of(error: BaseException) -> str:
    """Return what went wrong, in one line."""
    lines = [line.strip() for line in str(error).strip().splitlines()] or [type(error).__name__]
    ours = [match[1] for line in lines if (match := OURS.search(line))]
    if ours:
        return ours[-1][:MAX_LENGTH]
    theirs = [match[0] for line in lines if (match := CONDITION.search(line))]
    causes = [match[1] for line in lines if (match := CAUSE.search(line))]
    others = [match[1] for line in lines if (match := OTHER.search(line))]
    if theirs and causes and causes[-1] not in theirs[0]:
        return f"{theirs[0]} ({causes[-1]})"[:MAX_LENGTH]
    return [*theirs[:1], *others[:1], lines[0]][0][:MAX_LENGTH]


@contextmanager
def shorten_errors() -> Iterator[None]:
    """Raise errors of Spark as `SparkFailed`, for people who read them in a terminal."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"Spark failed: {summary_of(error)}") from error
