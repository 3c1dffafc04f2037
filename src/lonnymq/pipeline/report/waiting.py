"""Who waited, why, and when."""

from datetime import timedelta
from html import escape

from lonnymq.pipeline.report import draw
from lonnymq.pipeline.report.draw import Scale, tag, text
from lonnymq.pipeline.report.story import REASONS, Reading, Story

WIDTH = 960
LEFT = 170
BARS = 14
ROWS = 24
LINES = 6
# Colours of the heat, from nothing to the longest.
HEATS = 8


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
                content.append(
                    tag(
                        "rect",
                        x=x,
                        y=y,
                        width=end - x,
                        height=20,
                        rx=2,
                        class_=f"fill reason{number}",
                        data_tip=tip,
                    )
                )
            x = end
        words = f"{draw.span(tenant.wait_total_ms)} in all, {draw.span(tenant.wait_mean_ms)} each"
        content.append(text(right + 14, y + 15, words, "start", "value"))
    return _legend([(f"reason{number}", reason) for number, reason in enumerate(REASONS)]) + draw.picture(
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
    across = _time_scale(story)
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
        content.append(
            tag(
                "rect",
                x=x,
                y=22 * places[one.channel] + 1,
                width=max(width - 0.6, 0.8),
                height=20,
                class_=f"heat heat{int(level(one.wait_p95_ms))}",
                data_tip=tip,
            )
        )
    content += _time_axis(story, height - 8, height - 30)
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
    across = _time_scale(story)
    content = []
    for value in (0, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 864_000_000):
        if value <= longest:
            content += [_rule(up(value)), text(LEFT - 12, up(value) + 4, draw.span(value), "end")]
    content += _time_axis(story, bottom + 22, bottom)
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
    legend = _legend([(f"series{place}", channel) for place, channel in enumerate(tenants)])
    return legend + draw.picture(
        WIDTH, bottom + 36, "Waiting time of the tenants that waited longest", content
    )


def _time_scale(story: Story) -> Scale:
    return Scale(story.begin.timestamp(), story.end.timestamp(), LEFT, WIDTH - 14)


def _time_axis(story: Story, y: float, bottom: float) -> list[str]:
    across = _time_scale(story)
    marks = []
    for moment, words in draw.time_ticks(story.begin, story.end):
        x = across(moment.timestamp())
        marks.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="tick"))
        marks.append(text(min(x, WIDTH - 26), y, words, "middle"))
    return marks


def _rule(y: float) -> str:
    return tag("line", x1=LEFT, x2=WIDTH - 14, y1=y, y2=y, class_="rule")


def _legend(entries: list[tuple[str, str]]) -> str:
    keys = (
        tag("span", tag("i", class_=f"key {kind}"), escape(draw.shortened(words, 44)))
        for kind, words in entries
    )
    return tag("div", *keys, class_="legend")


time_scale, time_axis, legend = _time_scale, _time_axis, _legend
