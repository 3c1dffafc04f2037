"""Charts and tables from results/designs.json: for each family of designs, and for LonnyMQ."""

from typing import Any

from benchmarks.charts import bars, lines
from benchmarks.charts.bars import Bar, BarChart
from benchmarks.charts.lines import Line, LineChart
from benchmarks.charts.pages import Output, image, table
from benchmarks.charts.units import count, milliseconds, short, size

FILE = "designs.json"
COMMAND = "make bench-designs"
PARTS = (
    "designs-overview",
    "designs-flat",
    "designs-families",
    "designs-contention",
    "designs-load",
    "designs-plans",
)
OURS = "LonnyMQ"
Json = dict[str, Any]


def make(document: Json) -> Output:
    output = Output(parts={"designs-flat": flat(document), "designs-plans": plans(document)})
    output |= overview(document) | load(document) | contention(document)
    parts = []
    for family, title in document["families"].items():
        members = [design for design in document["designs"] if family in design["families"]]
        if members:
            one = family_part(family, title, members)
            output |= Output(charts=one.charts)
            parts.append(one.parts[family])
    return output | Output(parts={"designs-families": "\n\n".join(parts)})


def overview(document: Json) -> Output:
    """All designs that pick one message; for LonnyMQ, the slowest of its cases at each size."""
    designs = [design for design in document["designs"] if "recovery" not in design["families"]]
    ours = [design for design in designs if design["is_ours"]]
    drawn = [Line(label(design), points(design)) for design in designs if not design["is_ours"]]
    if ours:
        all_points = [point for design in ours for point in points(design)]
        slowest = tuple(
            (size, max(y for x, y in all_points if x == size)) for size in sorted({x for x, _ in all_points})
        )
        drawn.append(Line(f"{OURS}, slowest of {len(ours)} cases", slowest, is_ours=True))
    title = "Time to pick the next message, each design in its worst case"
    return Output(
        {"designs.svg": pick_chart(title, drawn)}, {"designs-overview": image(title, "designs.svg")}
    )


def family_part(family: str, title: str, members: list[Json]) -> Output:
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
    sizes = sorted({one["rows"] for design in members for one in design["sizes"]})
    rows = []
    for design in members:
        found = {one["rows"]: milliseconds(one["pick_ms"]) for one in design["sizes"]}
        rows.append(
            [
                f"{'**LonnyMQ**' if design['is_ours'] else design['title']}<br>*{design['case']}*",
                *(found.get(one, "not measured") for one in sizes),
                f"{design['sizes'][0]['pages']:,} → {design['sizes'][-1]['pages']:,}",
                design["published"] or "",
                runs(design),
            ]
        )
    heading = ["design and its worst case", *map(count, sizes), "pages per pick", "published", "run"]
    text = f"### {title}\n\n{image(title, f'designs-{family}.svg')}\n\n{table(heading, rows)}"
    return Output({f"designs-{family}.svg": chart}, {family: text})


def pick_chart(title: str, drawn: list[Line]) -> str:
    return lines.render(
        LineChart(
            title=title,
            x_title="rows in the table",
            y_title="median, both axes logarithmic; lower is better",
            y_format=milliseconds,
            lines=tuple(drawn),
        )
    )


def flat(document: Json) -> str:
    sizes = {design["name"]: [one["rows"] for one in design["sizes"]] for design in document["designs"]}
    rows = [
        [
            row["title"].partition(":")[0],
            f"{milliseconds(row['reference'])} at {count(sizes[row['case']][0])}",
            f"{milliseconds(row['value'])} at {count(sizes[row['case']][-1])}",
            f"{row['ratio']:.2f}",
            ("yes" if row["holds"] else "**no**") + ("" if row["is_certain"] else ", noisy"),
        ]
        for row in document["flat"]
    ]
    return table([OURS, "smallest", "largest", "ratio", "at most 1.5"], rows)


def load(document: Json) -> Output:
    """The loading rate and the space per row of the largest table."""
    rows = []
    for design in document["designs"]:
        last = design["sizes"][-1]
        rates = last["load_rows_per_s"]
        rows.append(
            [
                f"{'**LonnyMQ**: ' if design['is_ours'] else ''}{label(design)}",
                count(last["rows"]),
                f"{rates[0]:,.0f}",
                f"{rates[-1]:,.0f}",
                size(last["table_bytes"]),
                size(last["index_bytes"]),
                short((last["table_bytes"] + last["index_bytes"]) / last["rows"]),
            ]
        )
    heading = [
        "design",
        "rows",
        "rows/s, first million",
        "last million",
        "tables",
        "indexes",
        "bytes per row",
    ]
    text = (
        f"For the largest table of each design. Published: 30,000 to 47,000 rows/s.\n\n{table(heading, rows)}"
    )
    return Output(parts={"designs-load": text})


def contention(document: Json) -> Output:
    rows = document["contention"]["rows"]
    if not rows:
        return Output(parts={"designs-contention": "Not measured in this run."})
    title = "8 producers and 8 consumers on one channel"
    chart = bars.render(
        BarChart(
            title,
            "messages completed per second; thin lines show the spread of the rounds; higher is better",
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
    text = f"{image(title, 'designs-contention.svg')}\n\nPublished: {document['contention']['published']}."
    return Output({"designs-contention.svg": chart}, {"designs-contention": text})


def plans(document: Json) -> str:
    return "\n\n".join(
        f"<details><summary>{design['name']} at {count(design['sizes'][-1]['rows'])} rows</summary>\n\n```\n"
        + "\n".join(design["sizes"][-1]["plan"])
        + "\n```\n\n</details>"
        for design in document["designs"]
    )


def runs(design: Json) -> str:
    """Return the run that measured each size; older files record it only in the head."""
    found: dict[str, list[str]] = {}
    for one in design["sizes"]:
        if "date" in one:
            found.setdefault(f"{one['effort']}, {one['date'][:10]}", []).append(count(one["rows"]))
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(sizes)}: {run}" for run, sizes in found.items())


def points(design: Json) -> tuple[tuple[float, float], ...]:
    return tuple((one["rows"], one["pick_ms"]) for one in design["sizes"])


def label(design: Json) -> str:
    return str(design["name"]).removeprefix("lonnymq_").replace("_", " ")
