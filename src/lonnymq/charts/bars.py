"""Horizontal bars as HTML: unlike SVG, they wrap on a narrow screen and their text keeps its size."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from lonnymq.charts.draw import tag


@dataclass(frozen=True)
class Segment:
    """A part of a bar: its CSS class, its length as a part of the whole track, and its tip."""

    kind: str
    length: float
    tip: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A named bar; `mark` is where a mark crosses the track, `is_bad` colours the value."""

    name: str
    segments: Sequence[Segment]
    value: str
    note: str = ""
    mark: float | None = None
    is_bad: bool = False
    tip: str | None = field(default=None)


def bars(chart_name: str, rows: Iterable[Bar]) -> str:
    """Return a list of bars; screen readers read the names and values."""
    return tag("ul", *(_bar(row) for row in rows), class_="bars", aria_label=chart_name)


def _bar(row: Bar) -> str:
    parts = [
        tag("i", class_=f"part {one.kind}", style=f"width:{_percent(one.length)}", data_tip=one.tip)
        for one in row.segments
        if one.length > 0
    ]
    if row.mark is not None:
        parts.append(tag("i", class_="bar-mark", style=f"left:{_percent(row.mark)}"))
    value = [tag("b", escape(row.value), class_="bad-label" if row.is_bad else None)]
    if row.note:
        value.append(tag("span", escape(row.note)))
    return tag(
        "li",
        tag("span", escape(row.name), class_="bar-name", title=row.name),
        tag("span", *parts, class_="bar-track", data_tip=row.tip),
        tag("span", *value, class_="bar-value"),
    )


def _percent(part: float) -> str:
    return f"{100 * min(max(part, 0), 1):.2f}%"
