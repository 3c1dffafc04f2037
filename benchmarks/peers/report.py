"""The outcomes as results/peers.json, and as a table on the terminal."""

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.peers.adapters import OURS
from benchmarks.peers.peer import Peer
from benchmarks.peers.run import Outcome, Outcomes, shown
from benchmarks.peers.scenario import Metric, Scenario
from benchmarks.results import rounded

NOTE = (
    "Every peer does the same work, in turns with the others, each with its own best settings, in the same "
    "PostgreSQL where it uses one. Rates leave out the first tenth of the messages and the last, while "
    "processes start and end."
)
Json = dict[str, object]


def document(
    peers: Sequence[Peer], reasons: Mapping[str, str], found: Sequence[tuple[Scenario, Outcomes]]
) -> Json:
    return {
        "note": NOTE,
        "peers": [peer_json(peer, reasons.get(peer.name)) for peer in peers],
        "scenarios": [scenario_json(scenario, outcomes) for scenario, outcomes in found],
    }


def peer_json(peer: Peer, reason: str | None) -> Json:
    return {
        "name": peer.name,
        "title": peer.title,
        "is_ours": peer.is_ours,
        "packages": list(peer.packages),
        "service": peer.service.value,
        "features": sorted(feature.value for feature in peer.features),
        "settings": peer.settings,
        "skipped": reason,
    }


def scenario_json(scenario: Scenario, outcomes: Outcomes) -> Json:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "metrics": [metric_json(metric, outcomes) for metric in scenario.metrics],
    }


def metric_json(metric: Metric, outcomes: Outcomes) -> Json:
    medians = {name: median(metric, outcome) for name, outcome in outcomes.items()}
    best = best_peer(metric, medians)
    ours = medians.get(OURS.name)
    return {
        "key": metric.key,
        "title": metric.title,
        "unit": metric.unit,
        "is_higher_better": metric.is_higher_better,
        "bound": metric.bound,
        "best_peer": best,
        "ratio": rounded(ratio(ours, medians.get(best or ""))),
        "holds": holds(metric, ours, medians.get(best or "")),
        "results": [
            {
                "peer": name,
                "value": rounded(medians[name]),
                "rounds": [rounded(figures.get(metric.key)) for figures in outcome.rounds],
                "absent": outcome.absent or ("" if medians[name] is not None else "not in the time"),
            }
            for name, outcome in outcomes.items()
        ],
    }


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


def ratio(ours: float | None, best: float | None) -> float | None:
    return ours / best if ours is not None and best else None


def holds(metric: Metric, ours: float | None, best: float | None) -> bool | None:
    """Return whether the bound is kept; None if there is nothing to compare."""
    if metric.bound is None or best is None:
        return None
    if ours is None:
        return False
    return ours >= metric.bound * best if metric.is_higher_better else ours <= metric.bound * best


def table(scenario: Scenario, outcomes: Outcomes) -> str:
    lines = [f"{scenario.name}: {scenario.title}"]
    for metric in scenario.metrics:
        answer = metric_json(metric, outcomes)
        verdict = {True: "holds", False: "DOES NOT HOLD", None: ""}[holds_of(answer)]
        lines.append(f"  {metric.title}, {metric.unit}".rstrip(", ") + f"   {verdict}")
        for name, outcome in outcomes.items():
            values = [value for figures in outcome.rounds if (value := figures.get(metric.key)) is not None]
            spread = f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
            value = median(metric, outcome)
            lines.append(f"    {name:20} {outcome.absent or shown(value):>14}  {spread}".rstrip())
    return "\n".join(lines)


def holds_of(answer: Json) -> bool | None:
    verdict = answer["holds"]
    return verdict if isinstance(verdict, bool) else None
