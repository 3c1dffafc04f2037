"""Whether we are where we promise to be, beside every peer, and what the spread of the rounds says of it.

Rounds are interleaved, so figures are compared round by round: ours with a peer's of the same round. If the
bound is kept in every round it is kept; if in none, it is missed; if in some, the two are not told apart,
and that is a tie, also if our median is the better one. With one round there is no spread, and no tie.
"""

import statistics
from collections.abc import Mapping
from enum import StrEnum

from benchmarks.peers.adapters import OURS
from benchmarks.peers.run import Outcome, Outcomes
from benchmarks.peers.scenario import Metric


class Verdict(StrEnum):
    KEPT = "yes"
    TIED = "tie"
    MISSED = "no"


def judged(metric: Metric, outcomes: Outcomes) -> Verdict | None:
    """Return the worst verdict beside any peer; None if there is nothing to compare."""
    others = [outcome for name, outcome in outcomes.items() if name != OURS.name]
    ours = outcomes.get(OURS.name)
    compared = [outcome for outcome in others if median(metric, outcome) is not None]
    if metric.bound is None or ours is None or not compared:
        return None
    found = {beside(metric, ours, outcome) for outcome in compared}
    return next(verdict for verdict in (Verdict.MISSED, Verdict.TIED, Verdict.KEPT) if verdict in found)


def beside(metric: Metric, ours: Outcome, theirs: Outcome) -> Verdict:
    """Return the verdict beside one peer."""
    pairs = zip(ours.rounds, theirs.rounds, strict=False)
    kept = [is_kept(metric, mine.get(metric.key), other.get(metric.key)) for mine, other in pairs]
    if not any(kept):
        return Verdict.MISSED
    return Verdict.KEPT if all(kept) else Verdict.TIED


def is_kept(metric: Metric, ours: float | None, theirs: float | None) -> bool:
    """Return whether the bound is kept in one round; who has no figure is behind everybody who has."""
    if theirs is None or ours is None or metric.bound is None:
        return theirs is None
    return ours >= metric.bound * theirs if metric.is_higher_better else ours <= metric.bound * theirs


def median(metric: Metric, outcome: Outcome) -> float | None:
    """Return the median; a round that did not get there in time counts as the worst."""
    worst = float("-inf") if metric.is_higher_better else float("inf")
    rounds = [figures.get(metric.key) for figures in outcome.rounds]
    values = [worst if value is None else value for value in rounds]
    middle = statistics.median_low(values) if values else worst
    return None if middle == worst else middle


def best_peer(metric: Metric, medians: Mapping[str, float | None]) -> str | None:
    others = {name: value for name, value in medians.items() if name != OURS.name and value is not None}
    if not others:
        return None
    choose = max if metric.is_higher_better else min
    return choose(others, key=lambda name: others[name])
