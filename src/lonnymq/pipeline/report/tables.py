"""Tables of the report: sorted by a click on a heading, and one of all tenants that can be searched."""

import json
from collections.abc import Iterable, Sequence
from html import escape

from lonnymq.charts.draw import format_count, format_duration, format_percent, tag
from lonnymq.pipeline.report.summary import Summary, Tenant

REASON_HEADING = "main reason"
# Rows in the page itself, for printing and for browsers without scripts; the script shows the others.
STATIC_ROWS = 40
TENANT_HEADINGS = (
    "tenant",
    "released",
    "completed",
    "median wait",
    "95 % within",
    "longest wait",
    "message-time",
    "peak backlog",
    "peak concurrency",
    "share",
    REASON_HEADING,
)

# What a cell shows, and by what it is sorted.
Cell = tuple[str, object]


def section(name: str, heading: str, text: str, *content: str) -> str:
    return tag("section", tag("h2", escape(heading)), tag("p", text), *content, id=name)


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    heads = "".join(tag("th", escape(heading), class_=_cell_class(heading)) for heading in head)
    body = "".join(
        tag(
            "tr",
            *(
                tag("td", escape(shown), data_value=value, class_=_cell_class(head[place]))
                for place, (shown, value) in enumerate(row)
            ),
        )
        for row in rows
    )
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="table")


def tenants_section(summary: Summary) -> str:
    """All tenants: the first in the page, and all as data for the script, which searches and sorts them."""
    omitted = summary.channels - len(summary.tenants)
    text = "Click a heading to sort."
    if omitted > 0:
        text += f" {format_count(omitted)} tenants with less message-time are not in this page."
    heading = "All tenants" if omitted <= 0 else "Tenants"
    shown = table(TENANT_HEADINGS, [tenant_cells(one) for one in summary.tenants[:STATIC_ROWS]])
    if len(summary.tenants) <= STATIC_ROWS:
        return section("tenants", heading, text, shown)
    search = '<label>Search <input type="search" id="search" placeholder="name or reason"></label>'
    controls = tag("div", search, tag("span", id="found"), class_="controls", id="finder", hidden="hidden")
    more = tag("button", "Show more", type="button", id="more", hidden="hidden")
    cells = [tenant_cells(one) for one in summary.tenants]
    # Nothing in the data may look like the end of its element.
    rows = json.dumps(cells, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c")
    data = f'<script type="application/json" id="rows">{rows}</script>'
    return section("tenants", heading, text, controls, shown, more, data)


def tenant_cells(one: Tenant) -> Sequence[Cell]:
    return (
        (one.channel, one.channel),
        (format_count(one.releases), one.releases),
        (format_count(one.completed), one.completed),
        (format_duration(one.wait_p50_ms), one.wait_p50_ms),
        (format_duration(one.wait_p95_ms), one.wait_p95_ms),
        (format_duration(one.wait_max_ms), one.wait_max_ms),
        (format_duration(one.wait_total_ms), one.wait_total_ms),
        (format_count(one.backlog_peak), one.backlog_peak),
        (
            f"{one.concurrency_peak}" + (f" of {one.max_concurrency}" if one.max_concurrency else ""),
            one.concurrency_peak,
        ),
        (format_percent(one.share), one.share),
        (one.main_reason, one.main_reason),
    )


def _cell_class(heading: str) -> str | None:
    return "text" if heading == REASON_HEADING else None
