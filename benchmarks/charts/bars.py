"""A chart of horizontal bars, each with its name, its figure and the spread of its rounds."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.charts import svg

WIDTH, TOP, LEFT, RIGHT, ROW = 820.0, 58.0, 210.0, 110.0, 26.0


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
    height = TOP + ROW * len(chart.bars) + 10
    description = "; ".join(f"{bar.name}: {bar.figure}" for bar in chart.bars)
    return svg.document(WIDTH, height, chart.title, description, _parts(chart))


def _parts(chart: BarChart) -> Iterator[str]:
    longest = max(max(bar.value, bar.high or 0.0) for bar in chart.bars) or 1.0
    room = WIDTH - LEFT - RIGHT
    yield svg.text(16, 24, chart.title, "ink heading")
    yield svg.text(16, 43, chart.subtitle, "soft")
    for number, bar in enumerate(chart.bars):
        y = TOP + ROW * number
        kind = "ours" if bar.is_ours else "c7"
        yield svg.text(LEFT - 10, y + 15, bar.name, "ink mine" if bar.is_ours else "ink", "end")
        yield svg.bar(LEFT, y + 3, max(1.0, room * bar.value / longest), ROW - 9, kind)
        end = bar.value
        if bar.low is not None and bar.high is not None and bar.high > bar.low:
            middle = y + 3 + (ROW - 9) / 2
            yield svg.line(
                LEFT + room * bar.low / longest, middle, LEFT + room * bar.high / longest, middle, "halo"
            )
            end = max(end, bar.high)
        yield svg.text(
            LEFT + room * end / longest + 8, y + 15, bar.figure, "ink mine" if bar.is_ours else "ink"
        )
