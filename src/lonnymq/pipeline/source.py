"""The arguments that the steps share: which queue to read, and a callback for progress."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lonnymq.spark.options import redactable

OnProgress = Callable[[str], object]


def ignore_progress(line: str) -> None:
    """The default callback: discard the line."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which queue, and how to read its history; `reader` is the name under which progress is recorded."""

    dsn: str = field(repr=False)
    schema: str = "lonnymq"
    reader: str = "archive"
    max_rows: int = 1_000_000

    def options(self, **more: str) -> dict[str, str]:
        return {"dsn": redactable(self.dsn), "schema": self.schema, **more}
