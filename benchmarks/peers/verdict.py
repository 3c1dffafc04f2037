"""Whether we are where we promise to be, beside every peer, and what the spread of the rounds says of it.

Rounds are interleaved, so figures are compared round by round: ours with a peer's of the same round. Where
we promise to be ahead, being ahead means by more than the rounds of one contender differ anyway, and so does
being behind; what lies between is even. Ahead in every round is a yes, behind in every round a no, all else a
tie, whosoever has the better median. Where we promise to be near the best, the bound itself is the margin.
"""

import statistics
from collections.abc import Mapping
from enum import StrEnum

from benchmarks.peers.adapters import OURS
from benchmarks.peers.run import Outcome, Outcomes
from benchmarks.peers.scenario import Metric, Sampled

# Of two figures of the same round: what is nearer than this is even.
EVEN = 1.05


class Verdict(StrEnum):
    KEPT = "yes"
    TIED = "tie"
    MISSED = "no"


def judged(metric: Metric, outcomes: Outcomes) -> Verdict | None:
    """Return the worst verdict beside any peer; None if there is nothing to compare."""
    others = [outcome for name, outcome in outcomes.items() if name != OURS.name]
    ours = outcomes.get(OURS.name)
    compared = [outcome for outcome in others if middle(metric, outcome) is not None]
    if metric.bound is None or ours is None or not compared:
        return None
    found = {beside(metric, ours, outcome) for outcome in compared}
    return next(verdict for verdict in (Verdict.MISSED, Verdict.TIED, Verdict.KEPT) if verdict in found)


def beside(metric: Metric, ours: Outcome, theirs: Outcome) -> Verdict:
    """Return the verdict beside one peer."""
    pairs = zip(ours.rounds, theirs.rounds, strict=False)
    found = {in_round(metric, mine.get(metric.key), other.get(metric.key)) for mine, other in pairs}
    return found.pop() if len(found) == 1 else Verdict.TIED if found else Verdict.MISSED


def in_round(metric: Metric, ours: float | None, theirs: float | None) -> Verdict:
    """Return the verdict in one round; who has no figure is behind everybody who has."""
    if ours is None or theirs is None:
        return Verdict.KEPT if theirs is None else Verdict.MISSED
    bound = metric.bound or 1.0
    ours, theirs = (counted(metric, figure) for figure in (ours, theirs))
    if not metric.is_higher_better:
        ours, theirs, bound = theirs, ours, 1 / bound
    if bound != 1:
        return Verdict.KEPT if ours >= bound * theirs else Verdict.MISSED
    if ours > EVEN * theirs:
        return Verdict.KEPT
    return Verdict.MISSED if theirs > EVEN * ours else Verdict.TIED


def counted(metric: Metric, figure: float) -> float:
    """Return the figure, or what is enough where it is better than that."""
    if metric.enough is None:
        return figure
    return min(figure, metric.enough) if metric.is_higher_better else max(figure, metric.enough)


def middle(metric: Metric, outcome: Outcome) -> float | None:
    """Return the figure of all rounds; one that did not get there in time counts as the worst."""
    if metric.pool is not None:
        sampled = (figures.samples for figures in outcome.rounds if isinstance(figures, Sampled))
        samples = [one for those in sampled for one in those]
        return metric.pool(samples) if samples else None
    worst = float("-inf") if metric.is_higher_better else float("inf")
    rounds = [figures.get(metric.key) for figures in outcome.rounds]
    values = [worst if value is None else value for value in rounds]
    median = statistics.median_low(values) if values else worst
    return None if median == worst else median


def best_peer(metric: Metric, figures: Mapping[str, float | None]) -> str | None:
    others = {name: value for name, value in figures.items() if name != OURS.name and value is not None}
    if not others:
        return None
    choose = max if metric.is_higher_better else min
    return choose(others, key=lambda name: others[name])
