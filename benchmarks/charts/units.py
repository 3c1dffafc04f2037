"""Axes: where a value lies, which values are marked, and how figures are written."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Format = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """A range of values on a line of pixels from `begin` to `end`."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = True

    def place(self, value: float, begin: float, end: float) -> float:
        low, high, value = (self._scaled(one) for one in (self.low, self.high, max(value, self.low)))
        return begin + (end - begin) * ((value - low) / (high - low) if high > low else 0.5)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def log_axis(values: Sequence[float], form: Format) -> Axis:
    """Return an axis of whole decades around all values; those that are not positive have no place on it."""
    positive = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(positive)) + 1e-9)
    high = max(math.ceil(math.log10(max(positive)) - 1e-9), low + 1)
    return Axis(
        10.0**low, 10.0**high, tuple((10.0**power, form(10.0**power)) for power in range(low, high + 1))
    )


def named_axis(names: Sequence[str]) -> Axis:
    """Return an axis of names, one after the other at 0, 1, 2 and so on."""
    ticks = tuple((float(number), name) for number, name in enumerate(names))
    return Axis(-0.3, len(names) - 0.7, ticks, is_log=False)


def milliseconds(value: float) -> str:
    """Return as people say it: 0.2 ms, 35 ms, 4.5 s, 12 min."""
    if value >= 120_000:
        return f"{short(value / 60_000)} min"
    return f"{short(value / 1000)} s" if value >= 1000 else f"{short(value)} ms"


def seconds(value: float) -> str:
    return f"{short(value)} s" if value >= 1 else milliseconds(value * 1000)


def count(value: float) -> str:
    """Return 10k, 100k, 1M: sizes of tables."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{short(value / unit)}{name}"
    return short(value)


def size(value: float) -> str:
    for unit, name in ((2**40, "TB"), (2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if value >= unit:
            return f"{short(value / unit)} {name}"
    return f"{short(value)} B"


def short(value: float) -> str:
    """Return two digits that count, and never an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    rounded = f"{value:,.{digits}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded
