"""The arguments that the steps share: the session, which queue to read, and a callback for progress."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lonnymq.errors import InvalidArgument
from lonnymq.spark.options import redactable

OnProgress = Callable[[str], object]


def ignore_progress(line: str) -> None:
    """The default callback: discard the line."""


def require_classic(spark: Any, step: str, reason: str) -> None:
    """Refuse a session of Spark Connect, which has no JVM and no streams in this process."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InvalidArgument(
            f"spark must not be a session of Spark Connect for the step {step}, which {reason}: run it with"
            " spark-submit, or in a session with a master"
        )


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which queue, and how to read its history; `reader` is the name under which progress is recorded."""

    dsn: str = field(repr=False)
    schema: str = "lonnymq"
    reader: str = "archive"
    max_rows: int = 1_000_000
    # Whether the archive may continue after a failover or a restore, as the option of the stream.
    rebase: bool = False

    def options(self, **more: str) -> dict[str, str]:
        return {"dsn": redactable(self.dsn), "schema": self.schema, **more}
