"""Charts and tables from results/scale.json: the costs of messages, connections, channels and history."""

from typing import Any

from benchmarks.charts import lines
from benchmarks.charts.lines import Line, LineChart
from benchmarks.charts.pages import Output, image, table
from benchmarks.charts.units import count, short, size

FILE = "scale.json"
COMMAND = "make bench-scale"
PARTS = ("scale-message", "scale-connections", "scale-channels", "scale-history", "scale-limits")
DAY_S = 86_400
RATES = (100, 1_000, 10_000)
# The share of CPU time that the queue may use; the rest is for other work.
CPU_SHARE = 0.5
CORES = (4, 16, 64)
Json = dict[str, Any]


def make(document: Json) -> Output:
    output = Output(parts=dict.fromkeys(PARTS, "*Not part of the recorded run.*"))
    if "message" in document:
        output |= Output(parts={"scale-message": message(document), "scale-limits": limits(document)})
    if "connections" in document:
        output |= connections(document)
    if "channels" in document:
        output |= channels(document)
    if "history" in document:
        output |= Output(parts={"scale-history": history(document)})
    return output


def message(document: Json) -> str:
    rows = [
        [
            f"history {row['history']}, batches of {row['batch']}",
            "-" if row["server_cpu_s_per_million"] is None else f"{row['server_cpu_s_per_million']:,.0f}",
            f"{row['wal_bytes_per_message']:,.0f}",
        ]
        for row in document["message"]
    ]
    return table(["", "server CPU seconds per million messages", "bytes of WAL per message"], rows)


def limits(document: Json) -> str:
    """Return how many messages a number of cores can process if the queue uses half of their time."""
    rows = []
    for row in document["message"]:
        if row["server_cpu_s_per_million"] and row["history"] == "off":
            per_core = 1e6 / row["server_cpu_s_per_million"]
            cells = []
            for cores in CORES:
                rate = cores * CPU_SHARE * per_core
                cells.append(f"{short(rate)}/s, {size(rate * row['wal_bytes_per_message'])}/s of WAL")
            rows.append([f"batches of {row['batch']}", *cells])
    return table(["half of the CPU time of", *(f"{cores} cores" for cores in CORES)], rows)


def connections(document: Json) -> Output:
    found = document["connections"]
    title = "Messages per second by number of connections"
    points = tuple((row["connections"], row["messages_per_s"]) for row in found)
    chart = lines.render(
        LineChart(
            title=title,
            x_title="connections that create, dequeue and complete",
            y_title="messages per second, batches of 10, 100 channels; higher is better",
            y_format=count,
            lines=(Line("LonnyMQ", points, is_ours=True),),
            is_y_from_zero=True,
        )
    )
    return Output(
        {"scale-connections.svg": chart}, {"scale-connections": image(title, "scale-connections.svg")}
    )


def channels(document: Json) -> Output:
    found = document["channels"]
    title = "Messages per second by number of channels"
    rates = tuple((row["channels"], row["messages_per_s"]) for row in found)
    first = tuple((row["channels"], row["first_turns_per_s"]) for row in found)
    chart = lines.render(
        LineChart(
            title=title,
            x_title="channels, of which 1,000 are active",
            y_title="per second, both axes logarithmic; higher is better",
            y_format=count,
            lines=(
                Line("dequeue and complete", rates, is_ours=True),
                Line("first turn of a new channel", first),
            ),
        )
    )
    rows = [
        [
            f"{row['channels']:,}",
            f"{row['messages_per_s']:,.0f}",
            f"{row['pages_per_dequeue']:,.0f}",
            f"{row['first_turns_per_s']:,.0f}",
            size(row["bytes_per_channel"] * row["channels"]),
        ]
        for row in found
    ]
    heading = [
        "channels",
        "messages/s of 1,000 active channels",
        "pages touched by a dequeue of 100",
        "first turns/s",
        "disk space of all channels",
    ]
    text = f"{image(title, 'scale-channels.svg')}\n\n{table(heading, rows, numbers_from=0)}"
    return Output({"scale-channels.svg": chart}, {"scale-channels": text})


def history(document: Json) -> str:
    rows = [
        [
            row["mode"],
            f"{row['bytes_per_attempt']:,.0f}",
            *(size(row["bytes_per_attempt"] * rate * DAY_S) for rate in RATES),
        ]
        for row in document["history"]
    ]
    heading = ["history", "bytes per attempt", *(f"per day at {rate:,}/s" for rate in RATES)]
    return table(heading, rows)
