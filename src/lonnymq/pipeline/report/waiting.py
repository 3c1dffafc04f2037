"""Who waited, why, and when."""

from datetime import timedelta

from lonnymq.charts import draw
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.story import REASONS, Reading, Story

WIDTH = 960
LEFT = 170
RIGHT = WIDTH - 14
BARS = 14
ROWS = 24
LINES = 6
# Colours of the heat, from nothing to the longest.
HEATS = 8
# Durations that a logarithmic axis marks.
MARKS_MS = (0, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 864_000_000)


def reasons(story: Story) -> str:
    """One bar per tenant that waited, longest first: what its waiting consists of."""
    tenants = [tenant for tenant in story.tenants if tenant.wait_total_ms][:BARS]
    if not tenants:
        return ""
    height = 40 + 30 * len(tenants)
    right = WIDTH - 230
    content = []
    for place, tenant in enumerate(tenants):
        y = 14 + 30 * place
        content.append(text(LEFT - 12, y + 15, draw.shortened(tenant.channel), "end", "name"))
        x, whole = float(LEFT), sum(tenant.reasons.values()) or 1
        for number, reason in enumerate(REASONS):
            waited = tenant.reasons.get(reason, 0)
            end = x + (right - LEFT) * waited / whole
            if end - x >= 0.3:
                tip = f"{tenant.channel}: {draw.span(waited)} because of {reason}"
                content.append(draw.bar(x, y, end - x, 20, f"fill reason{number}", tip=tip, rx=2))
            x = end
        words = f"{draw.span(tenant.wait_total_ms)} in all, {draw.span(tenant.wait_mean_ms)} each"
        content.append(text(right + 14, y + 15, words, "start", "value"))
    return draw.legend([(f"reason{number}", reason) for number, reason in enumerate(REASONS)]) + draw.picture(
        WIDTH, height, "What each tenant's messages waited for", content
    )


def heat(story: Story) -> str:
    """Tenants by time: the darker, the longer the wait."""
    tenants = [tenant.channel for tenant in story.tenants[:ROWS]]
    readings = [one for one in story.readings if one.wait_p95_ms is not None]
    if not tenants or not readings:
        return ""
    longest = max(one.wait_p95_ms or 0 for one in readings)
    level = Scale(0, max(longest, 1), 0, HEATS - 0.001, draw.bent)
    height = 22 * len(tenants) + 32
    across = time_scale(story)
    step = timedelta(seconds=story.stretch_s)
    content = [
        text(LEFT - 12, 22 * place + 15, draw.shortened(channel), "end", "name")
        for place, channel in enumerate(tenants)
    ]
    places = {channel: place for place, channel in enumerate(tenants)}
    for one in readings:
        if one.channel not in places or one.wait_p95_ms is None:
            continue
        x = across(one.start.timestamp())
        width = across((one.start + step).timestamp()) - x
        tip = (
            f"{one.channel}, {draw.clock(one.start)}: 95 % within {draw.span(one.wait_p95_ms)},"
            f" {draw.number(one.releases)} released"
        )
        y = 22 * places[one.channel] + 1
        kind = f"heat heat{int(level(one.wait_p95_ms))}"
        content.append(draw.bar(x, y, max(width - 0.6, 0.8), 20, kind, tip=tip))
    content += draw.time_axis(across, height - 8, height - 30)
    edges = "".join(tag("i", class_=f"key heat{place}") for place in range(HEATS))
    scale = tag("div", "0 ms", edges, draw.span(longest), class_="legend heats")
    return scale + draw.picture(WIDTH, height, "Waiting time of each tenant over time", content)


def lines(story: Story) -> str:
    """The tenants that waited longest, on one scale."""
    tenants = [tenant.channel for tenant in story.tenants[:LINES]]
    by_channel: dict[str, list[Reading]] = {channel: [] for channel in tenants}
    for one in story.readings:
        if one.channel in by_channel:
            by_channel[one.channel].append(one)
    longest = max((one.wait_p95_ms or 0 for own in by_channel.values() for one in own), default=0)
    if not longest:
        return ""
    top, bottom = 14, 270
    up = Scale(0, longest, bottom, top, draw.bent)
    across = time_scale(story)
    marks = [(value, draw.span(value)) for value in MARKS_MS if value <= longest]
    content = draw.value_axis(up, marks, LEFT, RIGHT)
    content += draw.time_axis(across, bottom + 22, bottom)
    middle = story.stretch_s / 2
    for place, (_channel, own) in enumerate(by_channel.items()):
        points: list[tuple[float, float] | None] = []
        last = None
        for one in own:
            if last is not None and (one.start - last).total_seconds() > story.stretch_s * 1.5:
                points.append(None)
            if one.wait_p95_ms is not None:
                points.append((across(one.start.timestamp() + middle), up(one.wait_p95_ms)))
                last = one.start
        content.append(draw.line(points, f"stroke{place}"))
    legend = draw.legend([(f"series{place}", channel) for place, channel in enumerate(tenants)])
    return legend + draw.picture(
        WIDTH, bottom + 36, "Waiting time of the tenants that waited longest", content
    )


def time_scale(story: Story) -> Scale:
    """Return the scale that all charts over time share."""
    return Scale(story.begin.timestamp(), story.end.timestamp(), LEFT, RIGHT)
