"""Draws horizontal bars, each with its name, its figure and the spread of its rounds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.charts import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, LEFT, RIGHT, BOTTOM = 19.5, 158.0, 82.0, 6.0


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    figure: str
    is_ours: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class BarChart:
    title: str
    subtitle: str
    bars: tuple[Bar, ...]


def render(chart: BarChart) -> str:
    return plot.render(
        chart.title,
        chart.subtitle,
        "; ".join(f"{bar.name}: {bar.figure}" for bar in chart.bars),
        plot.TOP + ROW * len(chart.bars) + BOTTOM,
        (LEFT, RIGHT, BOTTOM),
        lambda axes: _draw(axes, chart.bars),
    )


def _draw(axes: "Axes", bars: tuple[Bar, ...]) -> None:
    drawn = axes.barh(
        range(len(bars)),
        [bar.value for bar in bars],
        height=0.66,
        color=[plot.OURS if bar.is_ours else plot.OTHERS for bar in bars],
        xerr=list(zip(*map(_spread, bars), strict=True)),
        error_kw={"ecolor": plot.SOFT, "elinewidth": 0.75},
    )
    figures = axes.bar_label(drawn, [bar.figure for bar in bars], padding=6, color=plot.INK)
    axes.set_xticks([])
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars], color=plot.INK)
    # The first bar is on top.
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, max(bar.value + _spread(bar)[1] for bar in bars) or 1.0)
    for place, (bar, name) in enumerate(zip(bars, axes.get_yticklabels(), strict=True)):
        drawn[place].set_gid(f"bar-{place}")
        for label in (name, figures[place]):
            label.set_fontweight("bold" if bar.is_ours else "normal")


def _spread(bar: Bar) -> tuple[float, float]:
    """Return how far the rounds extend below and above the end of the bar."""
    low, high = (bar.value if end is None else end for end in (bar.low, bar.high))
    return max(bar.value - low, 0.0), max(high - bar.value, 0.0)
