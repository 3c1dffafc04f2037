"""The delay before the next attempt; no I/O."""

import math
from dataclasses import dataclass
from random import Random

from lonnymq.errors import invalid


@dataclass(frozen=True)
class Retry:
    """Exponential backoff: a first delay of `first_s`, multiplied by `factor` each time, at most `max_s`.

    Each delay is shortened by a random share of up to `jitter`, so that messages that failed together are not
    retried together.
    """

    first_s: float = 1.0
    factor: float = 2.0
    max_s: float = 3600.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        _require("first_s", self.first_s, 0.0, math.inf)
        _require("factor", self.factor, 1.0, math.inf)
        _require("max_s", self.max_s, 0.0, 3_155_760_000.0)
        _require("jitter", self.jitter, 0.0, 1.0)

    def delay_s(self, attempt: int, random: Random) -> float:
        """Return the delay after this attempt, counted from 1."""
        try:
            delay_s = self.first_s * float(self.factor) ** (attempt - 1)
        except OverflowError:
            delay_s = math.inf if self.first_s else 0.0
        return min(delay_s, self.max_s) * (1.0 - self.jitter * random.random())


def _require(argument: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high:  # type: ignore[operator]
        most = "" if high == math.inf else f" and at most {high:g}"
        raise invalid(argument, value, f"a number, at least {low:g}{most}")
