"""Lines over time as a figure. Its labels are HTML, which keeps its size when the drawing is stretched.

Unlike a chart of `draw`, it needs no inline style, which a strict policy for contents forbids.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from lonnymq.charts.draw import Scale, line, tag, ticks

WIDTH, HEIGHT = 600.0, 100.0
SPARK_HEIGHT = 32.0
# A value at an instant; None interrupts the line.
Value = tuple[datetime, float] | None


@dataclass(frozen=True)
class Line:
    """A line of a figure; `number` is its colour, from 0 to 5."""

    label: str
    number: int
    values: Sequence[Value]

    @property
    def known(self) -> list[tuple[datetime, float]]:
        return [value for value in self.values if value is not None]


def figure(
    title: str,
    lines: Sequence[Line],
    begin: datetime,
    end: datetime,
    format_value: Callable[[float], str],
    *,
    note: str = "",
) -> str:
    """Return lines over a period, from zero to a round number, with the latest value of each."""
    highest = max((value for one in lines for _, value in one.known), default=0.0)
    top = ticks(highest, 2)[-1] if highest > 0 else 1.0
    keys = [
        tag(
            "span",
            tag("i", class_=f"key series{one.number}"),
            escape(one.label),
            tag("b", escape(format_value(one.known[-1][1]) if one.known else "\u2013")),
        )
        for one in lines
    ]
    drawing = _drawing(lines, begin, end, top, HEIGHT, _describe(title, lines, format_value))
    return tag(
        "figure",
        tag("figcaption", escape(title), tag("small", escape(note)) if note else ""),
        tag("div", *keys, class_="series-keys"),
        tag(
            "div",
            drawing,
            tag("span", escape(format_value(top)), class_="series-high"),
            tag("span", "0", class_="series-low"),
            class_="series-plot",
        ),
        tag(
            "div",
            tag("span", f"{begin:%H:%M} UTC"),
            tag("span", f"{begin + (end - begin) / 2:%H:%M}"),
            tag("span", f"{end:%H:%M}"),
            class_="series-times",
        ),
        class_="series",
    )


def sparkline(title: str, one: Line, begin: datetime, end: datetime) -> str:
    """Return a line without labels, for a figure beside it."""
    highest = max((value for _, value in one.known), default=0.0)
    return _drawing([one], begin, end, highest or 1.0, SPARK_HEIGHT, title, class_="spark")


def _drawing(
    lines: Sequence[Line],
    begin: datetime,
    end: datetime,
    top: float,
    height: float,
    name: str,
    class_: str = "series-lines",
) -> str:
    across = Scale(begin.timestamp(), end.timestamp(), 0.0, WIDTH)
    up = Scale(0.0, top, height - 1.5, 1.5)
    marks = (
        [tag("path", d=f"M0 {up(top / 2):.1f}H{WIDTH:.0f}", class_="rule")] if height > SPARK_HEIGHT else []
    )
    for one in lines:
        points = [
            None if value is None else (across(value[0].timestamp()), up(value[1])) for value in one.values
        ]
        if len(lines) == 1:
            marks.append(_area(points, height, one.number))
        marks.append(line(points, f"stroke{one.number}"))
    return tag(
        "svg",
        *marks,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        preserveAspectRatio="none",
        role="img",
        aria_label=name,
        class_=class_,
    )


def _area(points: Sequence[tuple[float, float] | None], height: float, number: int) -> str:
    """Return what is below a line, interrupted where the line is."""
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    paths = [
        f"M{run[0][0]:.1f} {height:.0f}" + "".join(f"L{x:.1f} {y:.1f}" for x, y in run) + f"V{height:.0f}Z"
        for run in runs
        if len(run) > 1
    ]
    return tag("path", d="".join(paths), class_=f"band series{number}") if paths else ""


def _describe(title: str, lines: Sequence[Line], format_value: Callable[[float], str]) -> str:
    """Return the chart in words, for those who do not see it."""
    words = []
    for one in lines:
        values = [value for _, value in one.known]
        if values:
            low, high, last = (format_value(value) for value in (min(values), max(values), values[-1]))
            words.append(f"{one.label} between {low} and {high}, last {last}")
    return f"{title}: {'; '.join(words) or 'nothing was recorded'}"
