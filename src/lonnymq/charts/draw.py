"""Draws with SVG: elements, scales, axes, legends, and numbers formatted for people.

Colours are CSS classes, which `style()` defines for light and dark pages.
"""

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from importlib import resources
from itertools import accumulate

STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def style() -> str:
    """Return the CSS that charts need."""
    return resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")


def tag(name: str, *content: str, **attributes: object) -> str:
    """Return an element; attributes lose a trailing underscore, and other underscores become dashes."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(_format_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{''.join(pairs)}>{''.join(content)}</{name}>"


def _format_attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def text(x: float, y: float, label: str, anchor: str = "start", class_: str = "label") -> str:
    return tag("text", escape(label), x=x, y=y, text_anchor=anchor, class_=class_)


def bar(
    x: float,
    y: float,
    width: float,
    height: float,
    class_: str,
    *,
    tip: str | None = None,
    rx: float | None = None,
) -> str:
    """Return a rectangle with corners rounded by `rx`; `tip` is shown when the mouse points at it."""
    return tag("rect", x=x, y=y, width=width, height=height, rx=rx, class_=class_, data_tip=tip)


def chart(width: int, height: int, name: str, content: Iterable[str]) -> str:
    """Return a chart; screen readers read its name."""
    return tag(
        "div",
        tag(
            "svg",
            *content,
            viewBox=f"0 0 {width} {height}",
            role="img",
            aria_label=name,
            style=f"min-width:{min(width - 140, 620)}px",
        ),
        class_="chart",
    )


@dataclass(frozen=True)
class Scale:
    """Maps values to coordinates; `transform` is applied to values first."""

    low: float
    high: float
    begin: float
    end: float
    transform: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        low, high = self.transform(self.low), self.transform(self.high)
        part = (self.transform(value) - low) / (high - low) if high > low else 0.0
        return self.begin + part * (self.end - self.begin)


def log1p(value: float) -> float:
    """A logarithmic transform that is defined at zero."""
    return math.log10(1 + max(value, 0))


def ticks(high: float, count: int = 4) -> list[float]:
    """Return round numbers from zero to the first one at or above `high`."""
    if high <= 0:
        return [0, 1]
    rough = high / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * 0.999)
    if high >= 1:
        step = max(step, 1) if high <= count else step
    return [step * place for place in range(math.ceil(high / step - 1e-9) + 1)]


def time_ticks(begin: datetime, end: datetime, most: int = 8) -> list[tuple[datetime, str]]:
    """Return round times between two, with labels; the label of a midnight is its date."""
    span_s = max((end - begin).total_seconds(), 1)
    days = math.ceil(span_s / most / 86400)
    step_s = next((step for step in STEPS_S if span_s / step <= most), 86400 * days)
    first = math.ceil(begin.timestamp() / step_s) * step_s
    found = []
    for place in range(most + 2):
        moment = datetime.fromtimestamp(first, UTC) + timedelta(seconds=step_s * place)
        if moment > end:
            break
        is_midnight = moment.hour == moment.minute == moment.second == 0
        form = "%d %b" if is_midnight else "%H:%M:%S" if step_s < 60 else "%H:%M"
        found.append((moment, moment.strftime(form).lstrip("0") if is_midnight else moment.strftime(form)))
    return found


def format_duration(ms: float) -> str:
    """Return a duration in a suitable unit."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit * 0.9995:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    days = seconds / 86400
    return f"{days:.1f} days" if days < 10 else f"{days:,.0f} days"


def format_count(value: float) -> str:
    """Return a count; large ones are abbreviated with k, M and B."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            short = value / (1000 if unit == "k" else size)
            return f"{short:.1f}{unit}" if abs(short) < 100 else f"{short:.0f}{unit}"
    return f"{value:,.0f}"


def format_percent(part: float) -> str:
    value = 100 * part
    return f"{value:.1f} %" if 0 < abs(value) < 10 else f"{value:.0f} %"


def format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def shorten(label: str, max_width: float = 22) -> str:
    """Cut a label that is wider than this many letters of average width."""
    widths = list(accumulate(_letter_width(letter) for letter in label))
    if not label or widths[-1] <= max_width:
        return label
    return label[: sum(width <= max_width - 1.9 for width in widths)] + "…"


def _letter_width(letter: str) -> float:
    """Return the approximate width of a letter; Chinese, Japanese and Korean ones are square."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    return 1.9 if letter in "mwMW@%" else 1.5 if letter.isupper() or letter in "<>=+&" else 1.1


def line(points: Sequence[tuple[float, float] | None], class_: str) -> str:
    """Return a line, interrupted at each None; a single point between two gaps becomes a dot."""
    segments: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            segments.append([])
        else:
            segments[-1].append(point)
    drawn = [
        tag("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in segment), class_=f"line {class_}")
        for segment in segments
        if len(segment) > 1
    ]
    dots = [dot(*segment[0], f"small {class_}") for segment in segments if len(segment) == 1]
    return "".join(drawn + dots)


def value_axis(up: Scale, marks: Iterable[tuple[float, str]], left: float, right: float) -> list[str]:
    """Return a horizontal rule at each mark, with the mark's label on the left."""
    drawn = []
    for value, label in marks:
        y = up(value)
        drawn += [
            tag("line", x1=left, x2=right, y1=y, y2=y, class_="rule"),
            text(left - 12, y + 4, label, "end"),
        ]
    return drawn


def time_axis(across: Scale, y: float, bottom: float) -> list[str]:
    """Return ticks below `bottom` at round times of a scale of timestamps, with labels at `y`.

    The page's script draws them again when it zooms, with the same rules.
    """
    begin, end = (datetime.fromtimestamp(edge, UTC) for edge in (across.low, across.high))
    drawn = []
    for moment, label in time_ticks(begin, end):
        x = across(moment.timestamp())
        drawn.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="tick"))
        # The last label must not extend beyond the chart.
        drawn.append(text(min(x, across.end - 12), y, label, "middle"))
    ticks = tag("g", *drawn, class_="time-axis", data_y=y, data_bottom=bottom)
    return [text(across.begin - 28, y, "UTC", "end"), ticks]


def plot(across: Scale, height: float, content: Iterable[str]) -> str:
    """Return the marks of a chart over time, in a frame of which a page's script can show a section."""
    width = across.end - across.begin
    return tag(
        "svg",
        *content,
        x=across.begin,
        y=0,
        width=width,
        height=height,
        viewBox=f"{across.begin:.1f} 0 {width:.1f} {height:.1f}",
        preserveAspectRatio="none",
        class_="plot",
    )


def dot(x: float, y: float, class_: str, tip: str | None = None) -> str:
    """Return a dot that stays round when a plot is stretched: a line of no length, with round ends."""
    return tag("path", d=f"M{x:.1f} {y:.1f}h0", class_=f"point {class_}", data_tip=tip)


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Return a legend from pairs of a CSS class and its label."""
    keys = (
        tag("span", tag("i", class_=f"key {kind}"), escape(shorten(label, 44))) for kind, label in entries
    )
    return tag("div", *keys, class_="legend")
