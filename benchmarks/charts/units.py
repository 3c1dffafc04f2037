"""Formats figures: short, and with a suitable unit."""

import math
from collections.abc import Callable

Format = Callable[[float], str]


def milliseconds(value: float) -> str:
    """Return milliseconds in a suitable unit: 0.2 ms, 35 ms, 4.5 s, 12 min."""
    if value >= 120_000:
        return f"{short(value / 60_000)} min"
    return f"{short(value / 1000)} s" if value >= 1000 else f"{short(value)} ms"


def seconds(value: float) -> str:
    return f"{short(value)} s" if value >= 1 else milliseconds(value * 1000)


def count(value: float) -> str:
    """Return a count, abbreviated: 10k, 100k, 1M."""
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
    """Return a number with two significant digits, never with an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    rounded = f"{value:,.{digits}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded
