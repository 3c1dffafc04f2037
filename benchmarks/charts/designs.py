"""What results/designs.json shows: a chart and a table per family, and ours flat among them."""

from typing import Any

from benchmarks.charts import bars, lines
from benchmarks.charts.axis import count, log_axis, milliseconds, short, size
from benchmarks.charts.bars import Bar, BarChart
from benchmarks.charts.lines import Line, LineChart
from benchmarks.charts.pages import Made, image, table

FILE = "designs.json"
COMMAND = "make bench-designs"
PARTS = (
    "designs-overview",
    "designs-flat",
    "designs-families",
    "designs-crowd",
    "designs-load",
    "designs-plans",
)
OURS = "LonnyMQ"
Json = dict[str, Any]


def make(document: Json) -> Made:
    made = Made(parts={"designs-flat": flat(document), "designs-plans": plans(document)})
    made |= overview(document) | load(document) | crowd(document)
    parts = []
    for family, title in document["families"].items():
        members = [design for design in document["designs"] if family in design["families"]]
        if members:
            one = family_part(family, title, members)
            made |= Made(charts=one.charts)
            parts.append(one.parts[family])
    return made | Made(parts={"designs-families": "\n\n".join(parts)})


def overview(document: Json) -> Made:
    """All designs that pick one message; of ours, at each size the slowest of its cases."""
    designs = [design for design in document["designs"] if "recovery" not in design["families"]]
    ours = [design for design in designs if design["is_ours"]]
    drawn = [Line(label(design), points(design)) for design in designs if not design["is_ours"]]
    if ours:
        slowest = tuple(
            (same[0][0], max(pick_ms for _, pick_ms in same)) for same in zip(*map(points, ours), strict=True)
        )
        drawn.append(Line(f"{OURS}, slowest of {len(ours)} cases", slowest, is_ours=True))
    title = "Time to pick the next message, each design in its worst case"
    return Made({"designs.svg": pick_chart(title, drawn)}, {"designs-overview": image(title, "designs.svg")})


def family_part(family: str, title: str, members: list[Json]) -> Made:
    verb = "give back or lease 100 messages" if family == "recovery" else "pick the next message"
    chart = pick_chart(
        f"{title}: time to {verb}",
        [
            Line(f"{OURS}: {design['name'].removeprefix('lonnymq_')}", points(design), is_ours=True)
            if design["is_ours"]
            else Line(label(design), points(design))
            for design in members
        ],
    )
    sizes = [one["rows"] for one in members[0]["sizes"]]
    rows = [
        [
            f"{'**LonnyMQ**' if design['is_ours'] else design['title']}<br>*{design['case']}*",
            *(milliseconds(one["pick_ms"]) for one in design["sizes"]),
            f"{design['sizes'][0]['pages']:,} → {design['sizes'][-1]['pages']:,}",
            design["published"] or "",
        ]
        for design in members
    ]
    heading = ["design, and its worst case", *map(count, sizes), "pages per pick", "published"]
    text = f"### {title}\n\n{image(title, f'designs-{family}.svg')}\n\n{table(heading, rows)}"
    return Made({f"designs-{family}.svg": chart}, {family: text})


def pick_chart(title: str, drawn: list[Line]) -> str:
    every = [point for line in drawn for point in line.points]
    return lines.render(
        LineChart(
            title=title,
            x_title="rows in the table",
            y_title="median, both axes logarithmic; lower is better",
            x=log_axis([x for x, _ in every], count),
            y=log_axis([y for _, y in every], milliseconds),
            lines=tuple(drawn),
            description="; ".join(
                f"{line.name}: {', '.join(f'{milliseconds(y)} at {count(x)}' for x, y in line.points)}"
                for line in drawn
            ),
        )
    )


def flat(document: Json) -> str:
    rows = [
        [
            row["title"].partition(":")[0],
            milliseconds(row["reference"]),
            milliseconds(row["value"]),
            f"{row['ratio']:.2f}",
            ("yes" if row["holds"] else "**no**") + ("" if row["is_certain"] else ", noisy"),
        ]
        for row in document["flat"]
    ]
    sizes = document["settings"]["rows"]
    heading = [OURS, f"at {count(min(sizes))}", f"at {count(max(sizes))}", "ratio", "at most 1.5"]
    return table(heading, rows)


def load(document: Json) -> Made:
    """The rate of each million, and the space of a row, in the largest table."""
    rows = []
    for design in document["designs"]:
        last = design["sizes"][-1]
        rates = last["load_rows_per_s"]
        rows.append(
            [
                f"{'**LonnyMQ**: ' if design['is_ours'] else ''}{label(design)}",
                f"{rates[0]:,.0f}",
                f"{rates[-1]:,.0f}",
                size(last["table_bytes"]),
                size(last["index_bytes"]),
                short((last["table_bytes"] + last["index_bytes"]) / last["rows"]),
            ]
        )
    largest = document["designs"][0]["sizes"][-1]["rows"]
    heading = ["design", "rows/s, first million", "last million", "tables", "indexes", "bytes per row"]
    text = f"With {largest:,} rows. Published: 30,000 to 47,000 rows/s.\n\n{table(heading, rows)}"
    return Made(parts={"designs-load": text})


def crowd(document: Json) -> Made:
    rows = document["crowd"]["rows"]
    if not rows:
        return Made(parts={"designs-crowd": "Not measured in this run."})
    title = "8 producers and 8 consumers on one channel"
    chart = bars.render(
        BarChart(
            title,
            "messages completed per second, the thin line is the spread of the rounds; longer is better",
            tuple(
                Bar(
                    f"{OURS if row['design'] == 'lonnymq' else row['design']}, batches of {row['batch']}",
                    row["completed_per_s"],
                    f"{row['completed_per_s']:,.0f}",
                    row["design"] == "lonnymq",
                    min(row["completed_per_s_rounds"]),
                    max(row["completed_per_s_rounds"]),
                )
                for row in rows
            ),
        )
    )
    text = f"{image(title, 'designs-crowd.svg')}\n\nPublished elsewhere, {document['crowd']['published']}."
    return Made({"designs-crowd.svg": chart}, {"designs-crowd": text})


def plans(document: Json) -> str:
    return "\n\n".join(
        f"<details><summary>{design['name']} at {count(design['sizes'][-1]['rows'])} rows</summary>\n\n```\n"
        + "\n".join(design["sizes"][-1]["plan"])
        + "\n```\n\n</details>"
        for design in document["designs"]
    )


def points(design: Json) -> tuple[tuple[float, float], ...]:
    return tuple((one["rows"], one["pick_ms"]) for one in design["sizes"])


def label(design: Json) -> str:
    return str(design["name"]).removeprefix("lonnymq_").replace("_", " ")
