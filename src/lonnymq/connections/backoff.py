"""Pauses between tries: growing, with jitter, until the time is over."""

import random
import time
from collections.abc import Iterator


def pauses(first_s: float, most_s: float, for_s: float) -> Iterator[float]:
    """Yield a pause before each next try, at least one; ends when `for_s` seconds have passed."""
    deadline = time.monotonic() + for_s
    pause_s = first_s
    while True:
        yield pause_s * random.uniform(0.5, 1.0)
        if time.monotonic() >= deadline:
            return
        pause_s = min(pause_s * 2, most_s)
