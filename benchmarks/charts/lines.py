"""A chart of lines, each named at its end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.charts import svg
from benchmarks.charts.axis import Axis

WIDTH, HEIGHT = 820.0, 440.0
TOP, RIGHT, BOTTOM, LEFT = 58.0, 230.0, 52.0, 66.0
# Between the baselines of two names.
GAP = 15.0


@dataclass(frozen=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]
    is_ours: bool = False
    # Of the palette; by default the next.
    colour: int | None = None


@dataclass(frozen=True)
class LineChart:
    title: str
    x_title: str
    y_title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    # Said to readers that do not see it.
    description: str = ""


def render(chart: LineChart) -> str:
    return svg.document(WIDTH, HEIGHT, chart.title, chart.description or chart.y_title, _parts(chart))


def _parts(chart: LineChart) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield svg.text(LEFT, 24, chart.title, "ink heading")
    yield svg.text(LEFT, 43, chart.y_title, "soft")
    for value, name in chart.y.ticks:
        y = chart.y.place(value, bottom, TOP)
        yield svg.line(LEFT, y, right, y, "grid")
        yield svg.text(LEFT - 8, y + 4, name, "soft", "end")
    for value, name in chart.x.ticks:
        yield svg.text(chart.x.place(value, LEFT, right), bottom + 20, name, "soft", "middle")
    yield svg.text((LEFT + right) / 2, HEIGHT - 10, chart.x_title, "soft", "middle")

    drawn = []
    colours = iter(range(1_000))
    for line in chart.lines:
        colour = line.colour if line.colour is not None or line.is_ours else next(colours)
        kind = "ours" if line.is_ours else f"c{(colour or 0) % svg.COLOURS}"
        places = [(chart.x.place(x, LEFT, right), chart.y.place(y, bottom, TOP)) for x, y in line.points]
        drawn.append((line, kind, places))
    # Ours last, so that it lies on top.
    for line, kind, places in sorted(drawn, key=lambda one: one[0].is_ours):
        yield svg.path(places, kind)
        for x, y in places:
            yield svg.dot(x, y, kind, 4 if line.is_ours else 3)
    ends = [places[-1][1] for _, _, places in drawn]
    for (line, kind, places), y in zip(drawn, spread(ends, TOP, bottom), strict=True):
        x, end = places[-1]
        if abs(y - end) > GAP / 2 or x < right - 12:
            yield svg.line(x + 5, end, right + 8, y, "halo")
        yield svg.text(right + 12, y + 4, line.name, f"{kind}f" + (" mine" if line.is_ours else ""))


def spread(wanted: Sequence[float], low: float, high: float, gap: float = GAP) -> list[float]:
    """Return places near the wanted ones, in the same order, that are at least a gap apart."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    # Names that would touch form a block, which stands around the middle of where they want to be.
    blocks: list[list[int]] = []
    starts: list[float] = []
    for number in order:
        block = [number]
        start = wanted[number]
        while blocks and starts[-1] + gap * len(blocks[-1]) > start:
            block = blocks.pop() + block
            starts.pop()
            middle = sum(wanted[one] for one in block) / len(block)
            start = min(max(middle - gap * (len(block) - 1) / 2, low), high - gap * (len(block) - 1))
        blocks.append(block)
        starts.append(start)
    places = [0.0] * len(wanted)
    for block, start in zip(blocks, starts, strict=True):
        for place, number in enumerate(block):
            places[number] = start + gap * place
    return places
