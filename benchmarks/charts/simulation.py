"""Charts and tables from results/simulation.json: waiting times by policy and by tenant size."""

from typing import Any

from benchmarks.charts import lines
from benchmarks.charts.lines import Line, LineChart
from benchmarks.charts.pages import Output, image, table
from benchmarks.charts.units import milliseconds, seconds

FILE = "simulation.json"
COMMAND = "make simulate"
PARTS = (
    "simulation-chart",
    "simulation-parameters",
    "simulation-tenants",
    "simulation-sizes",
    "simulation-weights",
)
NAMES = {
    "fifo": "FIFO",
    "turns": "LonnyMQ: turns",
    "weights": "weights",
    "caps": "caps",
    "rates": "rate limits",
}
# The shortest wait that the simulation can resolve.
MIN_WAIT_S = 0.001
Json = dict[str, Any]


def make(document: Json) -> Output:
    return (
        Output(parts={"simulation-parameters": parameters(document)})
        | tenants(document)
        | sizes(document)
        | weights(document)
    )


def parameters(document: Json) -> str:
    given = document["parameters"]
    rows = [
        [group["name"], f"{group['tenants']:,}", f"{group['messages']:,}"] for group in document["groups"]
    ]
    return (
        f"{given['tenants']:,} tenants, {document['active']:,} of which send {document['messages']:,} "
        f"messages within {given['duration_s'] // 60} minutes. Tenants with {given['burst_from']} or more "
        f"messages send them within a second. {given['slots']} messages are processed at a time. A message "
        f"takes {given['work_ms']} ms; those of {given['slow_tenants']} large tenants take "
        f"{given['slow_work_ms'] / 1000:g} s.\n\n"
        + table(["messages per tenant", "tenants", "messages"], rows)
    )


def tenants(document: Json) -> Output:
    """The mean waiting time of tenants: the median tenant, and those that wait longest."""
    names = [f"{100 - percent:g} %" if percent > 50 else "half" for percent in document["percentiles"]]
    drawn = [line(policy, policy["all"]) for policy in document["policies"] if policy["name"] != "weights"]
    title = "Waiting time of tenants"
    chart = wait_chart(
        title, "share of tenants that wait longer", "mean wait of a tenant's messages", names, drawn
    )
    rows = [
        [
            policy["title"],
            *(seconds(max(wait, MIN_WAIT_S)) for wait in policy["all"]),
            f"{policy['max_in_flight']:,}",
            milliseconds(policy["all_done_after_s"] * 1000),
            f"{policy['idle_share']:.0%}",
        ]
        for policy in document["policies"]
    ]
    heading = [
        "",
        *names,
        "peak concurrency of one tenant",
        "all done after",
        "slots free while messages waited",
    ]
    shown = image(title, "simulation.svg")
    parts = {"simulation-chart": shown, "simulation-tenants": f"{shown}\n\n{table(heading, rows)}"}
    return Output({"simulation.svg": chart}, parts)


def sizes(document: Json) -> Output:
    names = [group["name"] for group in document["groups"]]
    drawn = [
        line(policy, [group["p50"] for group in policy["groups"]])
        for policy in document["policies"]
        if policy["name"] != "weights"
    ]
    title = "Waiting time by the number of a tenant's messages"
    chart = wait_chart(
        title, "messages per tenant", "mean wait of the median tenant of that size", names, drawn
    )
    return Output({"simulation-sizes.svg": chart}, {"simulation-sizes": image(title, "simulation-sizes.svg")})


def weights(document: Json) -> Output:
    policies = {policy["name"]: policy["groups"] for policy in document["policies"]}
    names = [
        group["name"]
        for group, paying in zip(policies["turns"], policies["weights"], strict=True)
        if paying["p50_paying"] is not None
    ]
    chosen = {
        name: [group for group in groups if group["name"] in names] for name, groups in policies.items()
    }
    drawn = [
        Line("paying tenants, weight 1", points([group["p50_paying"] for group in chosen["turns"]])),
        Line(
            "LonnyMQ: with weight 10",
            points([group["p50_paying"] for group in chosen["weights"]]),
            is_ours=True,
        ),
        Line("other tenants", points([group["p50"] for group in chosen["weights"]])),
    ]
    title = "The effect of a weight"
    chart = wait_chart(
        title, "messages per tenant", "mean wait of the median tenant of that size", names, drawn
    )
    return Output(
        {"simulation-weights.svg": chart}, {"simulation-weights": image(title, "simulation-weights.svg")}
    )


def line(policy: Json, waits: list[float | None]) -> Line:
    return Line(NAMES[policy["name"]], points(waits), is_ours=policy["name"] == "turns")


def points(waits: list[float | None]) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(number), max(wait, MIN_WAIT_S)) for number, wait in enumerate(waits) if wait is not None
    )


def wait_chart(title: str, x_title: str, y_title: str, names: list[str], drawn: list[Line]) -> str:
    return lines.render(
        LineChart(
            title=title,
            x_title=x_title,
            y_title=f"{y_title}, logarithmic; lower is better",
            y_format=seconds,
            lines=tuple(drawn),
            x_names=tuple(names),
        )
    )
