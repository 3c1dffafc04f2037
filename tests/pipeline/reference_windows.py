"""A reference implementation of the figures of windows in plain Python: slow, but simple.

A history is a list of attempts, in milliseconds. Each figure is computed from the whole list, without the
pipeline's techniques: no events, no sorted timeline, no carrying over midnight. Instead, it looks at the
state of each message at a moment: a message waits if it is due and none of its attempts runs. So the backlog
is a number of different messages, and a message never waits longer than has passed.
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
    # Attempts without a number belong to a message each. A number may be issued again, at another time.
    message: int | None = None

    @property
    def due(self) -> int:
        due = max(self.created, self.dequeue)
        return due if self.leased is None else min(due, self.leased)

    @property
    def waited_until(self) -> int:
        return self.ended if self.leased is None else self.leased

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


def histogram(values: list[int]) -> list[tuple[int, int]]:
    """How many values each bucket has, by its middle; its values have the same seven first bits."""
    found: dict[int, int] = {}
    for value in values:
        width = 1 << max(value.bit_length() - 7, 0)
        middle = value // width * width + width // 2
        found[middle] = found.get(middle, 0) + 1
    return sorted(found.items())


def messages_of(attempts: list[Attempt]) -> list[list[Attempt]]:
    """The attempts of each message, in their order."""
    found: dict[Any, list[Attempt]] = {}
    for place, one in enumerate(attempts):
        message = f"alone {place}" if one.message is None else (one.message, one.created)
        found.setdefault(message, []).append(one)
    return list(found.values())


def is_running(message: list[Attempt], moment: int) -> bool:
    return any(one.leased is not None and one.leased <= moment < one.ended for one in message)


def is_waiting(message: list[Attempt], moment: int) -> bool:
    is_due = any(one.ever_waited and one.due <= moment < one.waited_until for one in message)
    return is_due and not is_running(message, moment)


def changes(message: list[Attempt]) -> set[int]:
    """The moments at which the message's state can change."""
    return {moment for one in message for moment in (one.due, one.leased, one.ended) if moment is not None}


def waited(message: list[Attempt], place: int) -> int:
    """How long the message had waited, without a pause or another attempt, when an attempt was leased."""
    end = message[place].waited_until
    earlier = {moment for one in message[:place] for moment in (one.leased, one.ended)}
    begin = end
    while begin not in earlier:
        before = max((moment for moment in changes(message) if moment < begin), default=None)
        if before is None or not is_waiting(message, before):
            break
        begin = before
    return end - begin


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


def is_arrival(first: Attempt) -> bool:
    """Whether the first attempt that is known of a message is its first, or it was cancelled before that."""
    return first.ever_waited and (first.attempt == 0 or (first.attempt == 1 and first.leased is not None))


def compute_row(
    attempts: list[Attempt], policy: ReferencePolicy, start: int, window: int
) -> dict[str, Any] | None:
    """The figures of one channel in one window; None if nothing happened, waited or ran."""
    end = start + window

    def within(moment: int | None) -> bool:
        return moment is not None and start <= moment < end

    messages = messages_of(attempts)
    # Levels change only at these moments.
    moments = {start} | {at for one in messages for at in changes(one) if start <= at < end}
    backlog = [sum(is_waiting(one, at) for one in messages) for at in moments]
    concurrency = [sum(is_running(one, at) for one in messages) for at in moments]
    released = [one for one in attempts if within(one.leased)]
    ended = [one for one in attempts if within(one.ended)]
    arrived = [one[0] for one in messages if is_arrival(one[0]) and within(one[0].due)]
    if not (arrived or released or ended or any(backlog) or any(concurrency)):
        return None
    waits = [waited(one, place) for one in messages for place in range(len(one)) if within(one[place].leased)]
    runs = [one.ended - one.leased for one in ended if one.leased is not None]
    gaps = release_gaps(attempts, policy, start, window)
    peak = max([*concurrency, 1 if released else 0])

    def count(outcome: str) -> int:
        return sum(one.outcome == outcome for one in ended)

    failures = count("deferred") + count("expired") + count("buried")
    return {
        "arrivals": len(arrived),
        "releases": len(released),
        "retries": sum(one.attempt > 1 for one in released),
        **{name: count(name) for name in ("completed", "deferred", "expired", "buried", "cancelled")},
        "failures": failures,
        **{f"wait_p{p}_ms": percentile(waits, p / 100) for p in (50, 95, 99)},
        "wait_max_ms": max(waits, default=None),
        "wait_total_ms": sum(waits),
        "wait_histogram": histogram(waits),
        **{f"run_p{p}_ms": percentile(runs, p / 100) for p in (50, 95, 99)},
        "run_max_ms": max(runs, default=None),
        "run_total_ms": sum(runs),
        "run_histogram": histogram(runs),
        "backlog_low": min(backlog),
        "backlog_peak": max(backlog),
        "backlog_end": sum(is_waiting(one, end - 1) for one in messages),
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
