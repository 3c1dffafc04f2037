"""The delay before the next attempt; no I/O."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from lonnymq.calls import argument
from lonnymq.errors import invalid


@dataclass(frozen=True)
class Retry:
    """Exponential backoff: a first delay of `first_s`, multiplied by `factor` each time, at most `max_s`.

    Each delay is shortened by a random share of up to `jitter`, so that messages that failed together are not
    retried together.

    Exceptions that are not of a class in `retry_on`, or are of one in `dont_retry_on`, bury the message at
    the first attempt. `delays` has fixed delays for classes of exceptions, such as {RateLimited: 60}. An
    exception group is retried if all exceptions in it are, after the longest of their fixed delays.
    """

    first_s: float = 1.0
    factor: float = 2.0
    max_s: float = 3600.0
    jitter: float = 0.2
    retry_on: type[BaseException] | tuple[type[BaseException], ...] = (BaseException,)
    dont_retry_on: type[BaseException] | tuple[type[BaseException], ...] = ()
    delays: Mapping[type[BaseException], timedelta | float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("retry_on", "dont_retry_on"):
            object.__setattr__(self, name, _classes(name, getattr(self, name)))
        if not isinstance(self.delays, Mapping):
            raise invalid("delays", self.delays, "a mapping of classes of exceptions to delays")
        _classes("delays", tuple(self.delays))
        delays = {one: argument.seconds("delays", delay) for one, delay in self.delays.items()}
        object.__setattr__(self, "delays", delays)
        _require("first_s", self.first_s, 0.0, math.inf)
        _require("factor", self.factor, 1.0, math.inf)
        _require("max_s", self.max_s, 0.0, 3_155_760_000.0)
        _require("jitter", self.jitter, 0.0, 1.0)

    def allows(self, error: BaseException) -> bool:
        """Whether an attempt that ended with this exception is followed by another."""
        found = leaves(error)
        is_of_class = isinstance(error, self.retry_on) or all(isinstance(one, self.retry_on) for one in found)
        return is_of_class and not any(isinstance(one, self.dont_retry_on) for one in (error, *found))

    def delay_s(self, attempt: int, random: Random) -> float:
        """Return the delay after this attempt, counted from 1."""
        try:
            delay_s = self.first_s * float(self.factor) ** (attempt - 1)
        except OverflowError:
            delay_s = math.inf if self.first_s else 0.0
        return min(delay_s, self.max_s) * (1.0 - self.jitter * random.random())

    def fixed_delay_s(self, error: BaseException | None, random: Random) -> float | None:
        """Return the delay of this exception's class, or of its closest base class, if there is one."""
        if not self.delays or error is None:
            return None
        found = [self._delay_of(one) for one in leaves(error)]
        delay_s = max((one for one in found if one is not None), default=self._delay_of(error))
        return None if delay_s is None else delay_s * (1.0 - self.jitter * random.random())

    def _delay_of(self, error: BaseException) -> float | None:
        for one in type(error).__mro__:
            if one in self.delays:
                return argument.seconds("delays", self.delays[one])
        return None


def leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions in a group, as an asyncio.TaskGroup raises it, or the error itself."""
    found, left = [], [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseExceptionGroup):
            left.extend(reversed(one.exceptions))
        else:
            found.append(one)
    return found


def _classes(name: str, given: object) -> tuple[type[BaseException], ...]:
    classes = given if isinstance(given, tuple) else (given,)
    for one in classes:
        if not isinstance(one, type) or not issubclass(one, BaseException):
            raise invalid(name, one, "a class of exceptions, or a tuple of them")
    return classes


def _require(name: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high:  # type: ignore[operator]
        most = "" if high == math.inf else f" and at most {high:g}"
        raise invalid(name, value, f"a number, at least {low:g}{most}")
