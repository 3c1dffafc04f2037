"""Decides whether LonnyMQ keeps its promise in comparison with every peer.

Rounds are interleaved, so LonnyMQ's figure is compared with a peer's figure of the same round. If the promise
is to be ahead, a figure is ahead or behind only by more than the rounds of a single contender differ;
otherwise the two are even. Ahead in every round is a yes, behind in every round a no, and anything else a
tie, regardless of the medians. If the promise is to be near the best, its bound is the margin.
"""

import statistics
from collections.abc import Iterable, Mapping
from enum import StrEnum

from benchmarks.peers.adapters import OURS, PEERS
from benchmarks.peers.run import Outcome, Outcomes
from benchmarks.peers.scenario import Metric, Sampled

# Two figures of the same round are even if their ratio is at most this.
EVEN_RATIO = 1.05
SERVICES = {peer.name: peer.service for peer in PEERS}


class Verdict(StrEnum):
    KEPT = "yes"
    TIED = "tie"
    MISSED = "no"


def judge(metric: Metric, outcomes: Outcomes) -> Verdict | None:
    """Return the worst verdict in comparison with any peer; None if there is nothing to compare."""
    others = [outcomes[name] for name in rivals(metric, outcomes)]
    ours = outcomes.get(OURS.name)
    compared = [outcome for outcome in others if overall_value(metric, outcome) is not None]
    if metric.bound is None or ours is None or not compared:
        return None
    found = {compare(metric, ours, outcome) for outcome in compared}
    return next(verdict for verdict in (Verdict.MISSED, Verdict.TIED, Verdict.KEPT) if verdict in found)


def compare(metric: Metric, ours: Outcome, theirs: Outcome) -> Verdict:
    """Return the verdict in comparison with one peer."""
    pairs = zip(ours.rounds, theirs.rounds, strict=False)
    found = {compare_round(metric, mine.get(metric.key), other.get(metric.key)) for mine, other in pairs}
    return found.pop() if len(found) == 1 else Verdict.TIED if found else Verdict.MISSED


def compare_round(metric: Metric, ours: float | None, theirs: float | None) -> Verdict:
    """Return the verdict of one round; a missing figure is behind every other figure."""
    if ours is None or theirs is None:
        return Verdict.KEPT if theirs is None else Verdict.MISSED
    bound = metric.bound or 1.0
    ours, theirs = (limit_to_enough(metric, figure) for figure in (ours, theirs))
    if not metric.is_higher_better:
        ours, theirs, bound = theirs, ours, 1 / bound
    if bound != 1:
        return Verdict.KEPT if ours >= bound * theirs else Verdict.MISSED
    if ours > EVEN_RATIO * theirs:
        return Verdict.KEPT
    return Verdict.MISSED if theirs > EVEN_RATIO * ours else Verdict.TIED


def limit_to_enough(metric: Metric, figure: float) -> float:
    """Return the figure, or `enough` if the figure is better than that."""
    if metric.enough is None:
        return figure
    return min(figure, metric.enough) if metric.is_higher_better else max(figure, metric.enough)


def overall_value(metric: Metric, outcome: Outcome) -> float | None:
    """Return the figure of all rounds together; a round without a figure counts as the worst."""
    if metric.pool is not None:
        sampled = (figures.samples for figures in outcome.rounds if isinstance(figures, Sampled))
        samples = [sample for samples in sampled for sample in samples]
        return metric.pool(samples) if samples else None
    worst = float("-inf") if metric.is_higher_better else float("inf")
    rounds = [figures.get(metric.key) for figures in outcome.rounds]
    values = [worst if value is None else value for value in rounds]
    median = statistics.median_low(values) if values else worst
    return None if median == worst else median


def best_peer(metric: Metric, figures: Mapping[str, float | None]) -> str | None:
    others = {name: value for name in rivals(metric, figures) if (value := figures[name]) is not None}
    if not others:
        return None
    choose = max if metric.is_higher_better else min
    return choose(others, key=lambda name: others[name])


def rivals(metric: Metric, names: Iterable[str]) -> list[str]:
    """Return the peers with which LonnyMQ is compared, of these."""
    return [name for name in names if name != OURS.name and metric.service in (None, SERVICES.get(name))]
