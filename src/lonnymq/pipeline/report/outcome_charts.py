"""Charts of outcomes: attempts and failures over time, and the forecast of backlogs."""

import math

from lonnymq.charts import draw
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.summary import BacklogForecast, Summary
from lonnymq.pipeline.report.waiting_charts import LEFT, RIGHT, WIDTH, time_scale

OUTCOMES = (("good", "completed"), ("series2", "deferred"), ("series3", "expired"), ("bad", "buried"))


def throughput(summary: Summary) -> str:
    """Columns of ended attempts by outcome."""
    highest = max(
        (one.completed + one.deferred + one.expired + one.buried for one in summary.periods), default=0
    )
    if not highest:
        return ""
    return _columns(summary, OUTCOMES, "Attempts that ended, by outcome")


def failures(summary: Summary) -> str:
    """Columns of failed attempts only: next to completed ones they would be too small to see."""
    if not any(one.deferred + one.expired + one.buried for one in summary.periods):
        return ""
    return _columns(summary, OUTCOMES[1:], "Attempts that failed, by outcome")


def _columns(summary: Summary, outcomes: tuple[tuple[str, str], ...], name: str) -> str:
    top, bottom = 14, 190
    highest = max(sum(getattr(one, outcome) for _, outcome in outcomes) for one in summary.periods)
    marks = draw.ticks(highest)
    up, across = Scale(0, marks[-1], bottom, top), time_scale(summary)
    content = draw.value_axis(up, [(value, draw.format_count(value)) for value in marks], LEFT, RIGHT)
    drawn = []
    for one in summary.periods:
        x = across(one.start.timestamp())
        width = max(across(one.start.timestamp() + summary.period_s) - x - 0.8, 0.8)
        y = float(bottom)
        for kind, outcome in outcomes:
            count = getattr(one, outcome)
            height = bottom - up(count)
            if count:
                y -= height
                tip = f"{draw.format_time(one.start)}: {draw.format_count(count)} {outcome}"
                drawn.append(draw.bar(x, y, width, max(height, 0.5), f"fill {kind}", tip=tip))
    content.append(draw.plot(across, bottom, drawn))
    content += draw.time_axis(across, bottom + 22, bottom)
    return draw.legend(outcomes) + draw.chart(WIDTH, bottom + 36, name, content)


def band(one: BacklogForecast, over_s: int, hours: float) -> tuple[float, float]:
    """Return between which backlogs the forecast lies in 19 of 20 cases, if messages arrive independently.

    Then the numbers of arrived and of served messages, from which the rates come, vary by their square roots.
    """
    net = one.arrivals_per_hour - one.served_per_hour
    counted = (one.arrivals_per_hour + one.served_per_hour) * over_s / 3600
    middle, spread = one.backlog + net * hours, 2 * math.sqrt(counted) * hours * 3600 / over_s
    return max(middle - spread, 0), max(middle + spread, 0)


def forecast(summary: Summary) -> str:
    """The expected backlog of each tenant over the next 24 hours, in a band of what chance may change."""
    shown = summary.forecasts[:6]
    if not shown:
        return ""
    top, bottom, right = 16, 220, WIDTH - 190
    highest = max(max(one.backlog, band(one, summary.over_s, 24)[1]) for one in shown)
    marks = draw.ticks(highest)
    up, across = Scale(0, marks[-1], bottom, top), Scale(0, 24, LEFT, right)
    content = draw.value_axis(up, [(value, draw.format_count(value)) for value in marks], LEFT, right)
    for hour, label in ((0, "now"), (1, ""), (6, "in 6 hours"), (12, "in 12 hours"), (24, "in 24 hours")):
        content.append(text(across(hour), bottom + 22, label, "middle"))
    ends = []
    for place, one in enumerate(shown):
        edges = [(hour, band(one, summary.over_s, hour)) for hour in range(0, 25, 2)]
        outline = [(hour, low) for hour, (low, _) in edges] + [
            (hour, high) for hour, (_, high) in edges[::-1]
        ]
        corners = " ".join(f"{across(hour):.1f},{up(value):.1f}" for hour, value in outline)
        content.append(tag("polygon", points=corners, class_=f"band series{place}"))
        hours = [(0.0, one.backlog), (1.0, one.in_1_hour), (6.0, one.in_6_hours), (24.0, one.in_24_hours)]
        if one.empty_in_s is not None and 0 < one.empty_in_s < 86400:
            # The time at which the backlog is empty lies between the forecast hours.
            hours = sorted([point for point in hours if point[1] or point[0]] + [(one.empty_in_s / 3600, 0)])
        points: list[tuple[float, float] | None] = [(across(hour), up(value)) for hour, value in hours]
        content.append(draw.line(points, f"stroke{place} dashed"))
        content.append(
            tag(
                "circle",
                cx=across(0),
                cy=up(one.backlog),
                r=4,
                class_=f"dot stroke{place}",
                data_tip=one.channel,
            )
        )
        ends.append((up(one.in_24_hours), place, one))
    # Labels at the ends of the lines, moved apart where they would overlap, and kept above the axis.
    ends.sort(key=lambda end: (end[0], end[1]))
    y = 0.0
    for rank, (at, place, one) in enumerate(ends):
        y = min(max(at, y + 17), bottom - 17 * (len(ends) - 1 - rank))
        label = f"{draw.shorten(one.channel, 16)}: {draw.format_count(one.in_24_hours)}"
        content += [
            tag("circle", cx=right + 12, cy=y - 4, r=4, class_=f"dot stroke{place}"),
            text(right + 22, y, label, "start", "value"),
        ]
    height = bottom + 34
    return draw.chart(WIDTH, height, "Forecast of the backlogs", content)
