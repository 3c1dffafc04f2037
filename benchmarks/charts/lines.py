"""Draws lines, each labelled at its end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.charts import plot
from benchmarks.charts.units import Format, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, LEFT, RIGHT, BOTTOM = 330.0, 54.0, 208.0, 42.0
# The least distance between the baselines of two labels.
GAP = 11.5
# The leader from the end of a line to its label.
LEADER = {
    "arrowstyle": "-", "color": plot.SOFT, "alpha": 0.45, "linewidth": 0.6, "shrinkA": 2, "shrinkB": 4
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]
    is_ours: bool = False


@dataclass(frozen=True)
class LineChart:
    """Both axes are logarithmic, unless the x axis has names or the y axis starts at zero."""

    title: str
    x_title: str
    y_title: str
    y_format: Format
    lines: tuple[Line, ...]
    # Names of the positions 0, 1, 2 and so on.
    x_names: tuple[str, ...] = ()
    is_y_from_zero: bool = False


def render(chart: LineChart) -> str:
    return plot.render(
        chart.title,
        chart.y_title,
        "; ".join(_description(chart, line) for line in chart.lines),
        HEIGHT,
        (LEFT, RIGHT, BOTTOM),
        lambda axes: _draw(axes, chart),
    )


def _description(chart: LineChart, line: Line) -> str:
    """Describe a line by its figures, for screen readers."""
    return f"{line.name}: " + ", ".join(f"{chart.y_format(y)} at {_x_name(chart, x)}" for x, y in line.points)


def _x_name(chart: LineChart, x: float) -> str:
    return chart.x_names[int(x)] if chart.x_names else count(x)


def _draw(axes: "Axes", chart: LineChart) -> None:
    _scale(axes, chart)
    colours = iter(plot.COLOURS * 9)
    to_parts = axes.transScale + axes.transLimits
    ends = [float(to_parts.transform(line.points[-1])[1]) for line in chart.lines]
    gap = GAP / (HEIGHT - plot.TOP - BOTTOM)
    for line, place in zip(chart.lines, spread_labels(ends, 0.0, 1.0, gap), strict=True):
        colour = plot.OURS if line.is_ours else next(colours)
        (drawn,) = axes.plot(
            *zip(*line.points, strict=True),
            color=colour,
            linewidth=2.6 if line.is_ours else 1.2,
            marker="o",
            markersize=5 if line.is_ours else 3.5,
            # LonnyMQ is drawn on top.
            zorder=4 if line.is_ours else 3,
            clip_on=False,
        )
        drawn.set_gid("ours" if line.is_ours else "other")
        axes.annotate(
            f"{line.name}, {chart.y_format(line.points[-1][1])}",
            line.points[-1],
            (1.025, place),
            textcoords="axes fraction",
            va="center",
            color=colour,
            weight="bold" if line.is_ours else "normal",
            arrowprops=LEADER,
        )


def _scale(axes: "Axes", chart: LineChart) -> None:
    points = [point for line in chart.lines for point in line.points]
    axes.margins(x=0.04)
    if chart.x_names:
        axes.set_xticks(range(len(chart.x_names)), chart.x_names)
    else:
        places = sorted({x for x, _ in points})
        axes.set_xscale("log")
        axes.set_xticks(places, [count(x) for x in places], minor=False)
    if chart.is_y_from_zero:
        axes.set_ylim(0, max(y for _, y in points) * 1.1)
    else:
        axes.set_yscale("log")
        decades = _decades([y for _, y in points])
        axes.set_ylim(decades[0], decades[-1])
        axes.set_yticks(decades)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: chart.y_format(value))
    axes.yaxis.grid(visible=True)
    axes.set_xlabel(chart.x_title)


def _decades(values: Sequence[float]) -> list[float]:
    """Return the powers of ten that enclose all values."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = max(math.ceil(math.log10(max(values)) - 1e-9), low + 1)
    return [10.0**power for power in range(low, high + 1)]


def spread_labels(wanted: Sequence[float], low: float, high: float, gap: float = GAP) -> list[float]:
    """Return positions near the wanted ones, in the same order and at least a gap apart."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    # With the gaps subtracted, positions must only not decrease: this is isotonic regression, by means of
    # neighbours.
    free = [wanted[number] - gap * rank for rank, number in enumerate(order)]
    places = [0.0] * len(wanted)
    for rank, number in enumerate(order):
        ends = range(rank + 1, len(free) + 1)
        nearest = max(min(fmean(free[start:end]) for end in ends) for start in range(rank + 1))
        places[number] = min(max(nearest, low), high - gap * (len(free) - 1)) + gap * rank
    return places
