"""The days that a step is asked for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lonnymq.errors import invalid


@dataclass(frozen=True)
class DayRange:
    """The days from `since` to `until`, both included; None leaves that end open. Days are in UTC."""

    since: date | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise invalid("since", self.since.isoformat(), f"no later than until, {self.until.isoformat()}")

    def of(self, days: Iterable[date]) -> list[date]:
        """Return those of the days that are in the range, in order."""
        return sorted(day for day in days if self._has(day))

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of these days; of a table of the lake, only their files are read."""
        if self.since is not None:
            frame = frame.where(f.col("day") >= f.lit(self.since))
        if self.until is not None:
            frame = frame.where(f.col("day") <= f.lit(self.until))
        return frame

    def _has(self, day: date) -> bool:
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)


ALL_DAYS = DayRange()
