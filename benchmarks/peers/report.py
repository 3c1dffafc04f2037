"""Formats the outcomes for results/peers.json and as a table for the terminal."""

import dataclasses
import platform
from collections.abc import Mapping, Sequence

from benchmarks.peers.adapters import OURS
from benchmarks.peers.environment import NODE
from benchmarks.peers.peer import Peer, Runtime
from benchmarks.peers.run import Outcome, Outcomes, format_value
from benchmarks.peers.scenario import Metric, Sampled, Scenario
from benchmarks.peers.verdict import Verdict, best_peer, judge, overall_value
from benchmarks.results import current_conditions, round_figure

NOTE = (
    "All peers do the same work in interleaved rounds, each with its own best settings, and in the same "
    "PostgreSQL if they use one. Rates exclude the first and the last tenth of the messages, during which "
    "processes start and end."
)
Json = dict[str, object]


def document(peers: Sequence[Peer], reasons: Mapping[str, str], scenarios: Sequence[Json]) -> Json:
    return {
        "note": NOTE,
        "peers": [peer_json(peer, reasons.get(peer.name)) for peer in peers],
        "scenarios": list(scenarios),
    }


def peer_json(peer: Peer, reason: str | None) -> Json:
    return {
        "name": peer.name,
        "title": peer.title,
        "is_ours": peer.is_ours,
        "packages": list(peer.packages),
        "runtime": NODE if peer.runtime is Runtime.NODE else f"python {platform.python_version()}",
        "service": peer.service.value,
        "features": sorted(feature.value for feature in peer.features),
        "settings": peer.settings,
        "skipped": reason,
    }


def scenario_json(scenario: Scenario, outcomes: Outcomes) -> Json:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "rule": scenario.rule,
        **dataclasses.asdict(current_conditions()),
        "took_s": {name: round_figure(sum(outcome.took_s)) for name, outcome in outcomes.items()},
        "metrics": [metric_json(metric, outcomes) for metric in scenario.metrics],
    }


def metric_json(metric: Metric, outcomes: Outcomes) -> Json:
    found = {name: overall_value(metric, outcome) for name, outcome in outcomes.items()}
    best = best_peer(metric, found)
    ours = found.get(OURS.name)
    return {
        "key": metric.key,
        "title": metric.title,
        "unit": metric.unit,
        "is_higher_better": metric.is_higher_better,
        "bound": metric.bound,
        "service": metric.service,
        "best_peer": best,
        "ratio": round_figure(ratio(ours, found.get(best or ""))),
        "verdict": judge(metric, outcomes),
        "results": [result_json(metric, name, outcome, found[name]) for name, outcome in outcomes.items()],
    }


def result_json(metric: Metric, name: str, outcome: Outcome, value: float | None) -> Json:
    remarks = [remark for figures in outcome.rounds if (remark := metric.remark(figures))]
    return {
        "peer": name,
        "value": round_figure(value),
        "rounds": [round_figure(figures.get(metric.key)) for figures in outcome.rounds],
        "samples": sum(len(figures.samples) for figures in outcome.rounds if isinstance(figures, Sampled)),
        "remark": remarks[0] if remarks else "",
        "absent": outcome.absent or ("" if value is not None else metric.missing),
    }


def ratio(ours: float | None, best: float | None) -> float | None:
    return ours / best if ours is not None and best else None


def table(scenario: Scenario, outcomes: Outcomes) -> str:
    lines = [f"{scenario.name}: {scenario.title}"]
    for metric in scenario.metrics:
        labels = {Verdict.KEPT: "kept", Verdict.TIED: "a tie", Verdict.MISSED: "MISSED", None: ""}
        title = f"  {metric.title}, {metric.unit}".rstrip(", ")
        lines.append(f"{title}   {labels[judge(metric, outcomes)]}".rstrip())
        for name, outcome in outcomes.items():
            values = [value for figures in outcome.rounds if (value := figures.get(metric.key)) is not None]
            spread = f"{format_value(min(values))} to {format_value(max(values))}" if len(values) > 1 else ""
            value = overall_value(metric, outcome)
            absent = outcome.absent or (metric.missing if value is None and outcome.rounds else "")
            lines.append(f"    {name:20} {absent or format_value(value):>14}  {spread}".rstrip())
    return "\n".join(lines)
