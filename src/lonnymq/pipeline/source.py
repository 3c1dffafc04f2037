"""Where a run reads and writes, and to whom it tells its progress."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lonnymq.spark.options import redactable

Say = Callable[[str], object]


def silent(line: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which queue, and how its history is read; `reader` is the name under which it is remembered there."""

    dsn: str = field(repr=False)
    schema: str = "lonnymq"
    reader: str = "archive"
    max_rows: int = 1_000_000

    def options(self, **more: str) -> dict[str, str]:
        return {"dsn": redactable(self.dsn), "schema": self.schema, **more}
