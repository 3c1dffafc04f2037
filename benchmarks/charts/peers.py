"""Charts and tables from results/peers.json: LonnyMQ compared with other queues."""

from typing import Any

from benchmarks.charts import bars
from benchmarks.charts.bars import Bar, BarChart
from benchmarks.charts.pages import Output, image, table
from benchmarks.charts.units import short

FILE = "peers.json"
COMMAND = "make bench-peers"
PARTS = ("peers-overview", "peers-verdicts", "peers-scenarios", "peers-settings")
# A scenario in which LonnyMQ is not ahead, and one in which it is.
OVERVIEW = ("drain", "held-snapshot")
SERVICES = {"postgresql": "PostgreSQL", "redis": "Redis", "rabbitmq": "RabbitMQ"}
Json = dict[str, Any]


def make(document: Json) -> Output:
    titles = {peer["name"]: peer["title"] for peer in document["peers"]}
    output = Output(
        parts={"peers-verdicts": verdicts(document, titles), "peers-settings": settings(document["peers"])}
    )
    texts = []
    for scenario in document["scenarios"]:
        charts = {
            file_name(scenario, metric): drawn
            for metric in scenario["metrics"]
            if (drawn := chart(scenario, metric, titles))
        }
        output |= Output(charts=charts)
        texts.append(scenario_text(scenario, titles))
    return output | Output(
        parts={"peers-overview": overview(document), "peers-scenarios": "\n\n".join(texts)}
    )


def overview(document: Json) -> str:
    shown = [scenario for scenario in document["scenarios"] if scenario["name"] in OVERVIEW]
    return "\n\n".join(image(one["title"], file_name(one, one["metrics"][0])) for one in shown)


def verdicts(document: Json, titles: dict[str, str]) -> str:
    """Return a row per judged figure: LonnyMQ, the best peer, and whether the promise is kept."""
    rows = []
    for scenario in document["scenarios"]:
        for metric in scenario["metrics"]:
            ours = next((one for one in metric["results"] if one["peer"] == "lonnymq"), None)
            best = next((one for one in metric["results"] if one["peer"] == metric["best_peer"]), None)
            if metric["bound"] is None or ours is None or best is None:
                continue
            among = f", of those in {SERVICES[metric['service']]}" if metric.get("service") else ""
            sign = "≥" if metric["is_higher_better"] else "≤"
            rows.append(
                [
                    metric["title"],
                    figure(ours, metric),
                    f"{figure(best, metric)} ({titles[best['peer']]}{among})",
                    "-" if metric["ratio"] is None else f"{metric['ratio']:g}",
                    f"{sign} {metric['bound']:g}",
                    "**no**" if metric["verdict"] == "no" else metric["verdict"],
                ]
            )
    return table(["figure", "LonnyMQ", "best peer", "ratio", "promised", "kept"], rows)


def scenario_text(scenario: Json, titles: dict[str, str]) -> str:
    metrics = scenario["metrics"]
    rows = []
    for number, first in enumerate(metrics[0]["results"]):
        results = [metric["results"][number] for metric in metrics]
        cells = [figure(one, metric) for one, metric in zip(results, metrics, strict=True)]
        rows.append([titles[first["peer"]], *cells])
    heading = ["peer", *(f"{metric['title']}{unit(metric)}" for metric in metrics)]
    rule = f"*How it is judged.* {scenario['rule']}" if scenario.get("rule") else ""
    images = "\n\n".join(
        image(metric["title"], file_name(scenario, metric))
        for metric in metrics[:1]
        if chart(scenario, metric, titles)
    )
    return "\n\n".join(filter(None, [f"### {scenario['title']}", rule, images, table(heading, rows)]))


def chart(scenario: Json, metric: Json, titles: dict[str, str]) -> str:
    """Return bars of all peers with a figure, the best first; only for a scenario's first metric."""
    found = [one for one in metric["results"] if one["value"] is not None]
    if metric is not scenario["metrics"][0] or not found:
        return ""
    found.sort(key=lambda one: one["value"], reverse=metric["is_higher_better"])
    better = "higher" if metric["is_higher_better"] else "lower"
    return bars.render(
        BarChart(
            title=scenario["title"],
            subtitle=f"{metric['title']}{unit(metric)}; {better} is better",
            bars=tuple(
                Bar(
                    titles[one["peer"]],
                    one["value"],
                    number(one["value"]),
                    one["peer"] == "lonnymq",
                    *lowest_and_highest(one["rounds"]),
                )
                for one in found
            ),
        )
    )


def settings(peers: list[Json]) -> str:
    rows = [
        [
            peer["title"],
            f"{' '.join(peer['packages']) or 'this checkout'}; {peer['runtime']}",
            peer["settings"] if peer["skipped"] is None else f"*skipped: {peer['skipped']}*",
        ]
        for peer in peers
    ]
    return table(["peer", "version", "settings"], rows, numbers_from=3)


def figure(result: Json, metric: Json) -> str:
    if result["value"] is None:
        return f"*{result['absent']}*" if result["absent"] else "-"
    low, high = lowest_and_highest(result["rounds"])
    rounds = f" ({number(low)} to {number(high)})" if low is not None and high is not None else ""
    remark = f" *{result['remark']}*" if result.get("remark") else ""
    return f"{number(result['value'])}{rounds}{remark}"


def lowest_and_highest(rounds: list[float | None]) -> tuple[float | None, float | None]:
    values = [value for value in rounds if value is not None]
    return (min(values), max(values)) if len(values) > 1 else (None, None)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else short(value)


def unit(metric: Json) -> str:
    return f", {metric['unit']}" if metric["unit"] else ""


def file_name(scenario: Json, metric: Json) -> str:
    return f"peers-{scenario['name']}.svg"
