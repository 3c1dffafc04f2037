"""A reference implementation of the figures of windows in plain Python: slow, but simple.

A history is a list of attempts, in milliseconds. Each figure is computed from the whole list, without the
pipeline's techniques: no events, no sorted timeline, no carrying over midnight.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Attempt:
    channel: str
    created: int
    dequeue: int
    leased: int | None
    ended: int
    outcome: str
    attempt: int = 1

    @property
    def due(self) -> int:
        due = max(self.created, self.dequeue)
        return due if self.leased is None else min(due, self.leased)

    @property
    def waited_until(self) -> int:
        return self.ended if self.leased is None else self.leased

    @property
    def is_first(self) -> bool:
        return self.attempt == 0 or (self.attempt == 1 and self.leased is not None)

    @property
    def ever_waited(self) -> bool:
        """False if it was cancelled before it was due."""
        return self.leased is not None or self.due < self.ended


@dataclass(frozen=True)
class ReferencePolicy:
    channel: str
    weight: int = 1
    max_concurrency: int | None = None
    interval: int | None = None
    burst: int = 1


def percentile(values: list[int], part: float) -> int | None:
    return sorted(values)[max(math.ceil(part * len(values)) - 1, 0)] if values else None


def level(intervals: list[tuple[int, int]], moment: int) -> int:
    return sum(begin <= moment < end for begin, end in intervals)


def levels(intervals: list[tuple[int, int]], begin: int, end: int) -> list[int]:
    """The levels at every time in [begin, end) at which they can change."""
    periods = {begin} | {moment for pair in intervals for moment in pair if begin <= moment < end}
    return [level(intervals, moment) for moment in periods]


def release_gaps(attempts: list[Attempt], policy: ReferencePolicy, start: int, window: int) -> list[int]:
    """The gaps between each release in the window and the one `burst` places earlier."""
    released = sorted(one.leased for one in attempts if one.leased is not None)
    found = []
    for place, moment in enumerate(released):
        if not start <= moment < start + window or place < policy.burst:
            continue
        before = released[place - policy.burst]
        # Across midnight, only gaps shorter than the interval count.
        if before // DAY_MS == moment // DAY_MS:
            found.append(moment - before)
        elif policy.interval is not None and before // DAY_MS == moment // DAY_MS - 1:
            midnight = moment // DAY_MS * DAY_MS
            if before + policy.interval > midnight:
                found.append(moment - before)
    return found


def compute_row(
    attempts: list[Attempt], policy: ReferencePolicy, start: int, window: int
) -> dict[str, Any] | None:
    """The figures of one channel in one window; None if nothing happened, waited or ran."""
    end = start + window

    def within(moment: int | None) -> bool:
        return moment is not None and start <= moment < end

    waiting = [(one.due, one.waited_until) for one in attempts if one.ever_waited]
    running = [(one.leased, one.ended) for one in attempts if one.leased is not None]
    due = [one for one in attempts if one.ever_waited and within(one.due)]
    released = [one for one in attempts if within(one.leased)]
    ended = [one for one in attempts if within(one.ended)]
    backlog = levels(waiting, start, end)
    concurrency = levels(running, start, end)
    if not (due or released or ended or any(backlog) or any(concurrency)):
        return None
    waits = [one.leased - one.due for one in released if one.leased is not None]
    runs = [one.ended - one.leased for one in ended if one.leased is not None]
    gaps = release_gaps(attempts, policy, start, window)
    peak = max([*concurrency, 1 if released else 0])

    def count(outcome: str) -> int:
        return sum(one.outcome == outcome for one in ended)

    failures = count("deferred") + count("expired") + count("buried")
    return {
        "arrivals": sum(one.is_first for one in due),
        "releases": len(released),
        "retries": sum(one.attempt > 1 for one in released),
        **{name: count(name) for name in ("completed", "deferred", "expired", "buried", "cancelled")},
        "failures": failures,
        **{f"wait_p{p}_ms": percentile(waits, p / 100) for p in (50, 95, 99)},
        "wait_max_ms": max(waits, default=None),
        "wait_total_ms": sum(waits),
        **{f"run_p{p}_ms": percentile(runs, p / 100) for p in (50, 95, 99)},
        "run_max_ms": max(runs, default=None),
        "run_total_ms": sum(runs),
        "backlog_low": min(backlog),
        "backlog_peak": max(backlog),
        "backlog_end": sum(one.due < end for one in attempts if one.ever_waited)
        - sum(one.waited_until < end for one in attempts if one.ever_waited),
        "concurrency_peak": peak,
        "max_concurrency": policy.max_concurrency,
        "is_over_cap": policy.max_concurrency is not None and peak > policy.max_concurrency,
        "gap_min_ms": min(gaps, default=None),
        "gaps_too_small": sum(policy.interval is not None and gap < policy.interval for gap in gaps),
        "release_interval_ms": policy.interval,
        "release_burst": policy.burst,
        "weight": policy.weight,
    }


def windows(
    history: Iterable[Attempt], policies: Iterable[ReferencePolicy], window: int
) -> dict[tuple[str, int], dict[str, Any]]:
    """All rows by channel and start; shares are computed among the channels that had something to do."""
    history = list(history)
    known = {policy.channel: policy for policy in policies}
    first = min(min(one.due, one.ended) for one in history) // window * window
    last = max(one.ended for one in history)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for start in range(first, last + 1, window):
        for channel in {one.channel for one in history}:
            own = [one for one in history if one.channel == channel]
            found = compute_row(own, known.get(channel, ReferencePolicy(channel)), start, window)
            if found is not None:
                rows[channel, start] = found
        add_shares({channel: found for (channel, at), found in rows.items() if at == start})
    return rows


def add_shares(rows: dict[str, dict[str, Any]]) -> None:
    active = [row for row in rows.values() if row["releases"] or row["backlog_peak"]]
    releases = sum(row["releases"] for row in rows.values())
    weights = sum(row["weight"] for row in active)
    for row in rows.values():
        row["share"] = row["releases"] / releases if releases else 0.0
        row["entitled_share"] = row["weight"] / weights if row in active else 0.0
        row["excess_share"] = max(row["share"] - row["entitled_share"], 0.0)
    for channel, row in rows.items():
        victims = [
            other
            for name, other in rows.items()
            if name != channel and is_unlimited(other) and other["share"] <= other["entitled_share"]
        ]
        row["others_wait_ms"] = sum(other["wait_total_ms"] for other in victims)
        row["blame_ms"] = row["excess_share"] * row["others_wait_ms"]


def is_unlimited(row: dict[str, Any]) -> bool:
    return row["max_concurrency"] is None and row["release_interval_ms"] is None


def jain(rows: list[dict[str, Any]]) -> float | None:
    served = [row["releases"] / row["weight"] for row in rows if row["backlog_low"] > 0 and is_unlimited(row)]
    squares = sum(value * value for value in served)
    return sum(served) ** 2 / (len(served) * squares) if len(served) > 1 and squares else None
