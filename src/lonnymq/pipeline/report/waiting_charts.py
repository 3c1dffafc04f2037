"""Charts of waiting times: by tenant, by reason and over time."""

from datetime import timedelta

from lonnymq.charts import draw
from lonnymq.charts.bars import Bar, Segment, bars
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.summary import REASONS, Summary, Tenant, TenantPeriod

WIDTH = 960
LEFT = 170
RIGHT = WIDTH - 14
MAX_BARS = 14
MAX_ROWS = 24
MAX_LINES = 6
# Colours of the heat map, from no waiting to the longest.
HEAT_COLOURS = 8
# Marks on a logarithmic axis of durations.
MARKS_MS = (0, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 864_000_000)


def reasons(summary: Summary) -> str:
    """One bar per tenant that waited, as long as its message-time, divided by reason."""
    tenants = [tenant for tenant in summary.tenants if tenant.wait_total_ms][:MAX_BARS]
    if not tenants:
        return ""
    longest = max(tenant.wait_total_ms for tenant in tenants)
    keys = draw.legend([(f"reason{number}", reason) for number, reason in enumerate(REASONS)])
    scale = tag("p", f"The longest bar is {draw.format_duration(longest)} of message-time.", class_="note")
    return (
        keys + bars("Message-time of each tenant by reason", [_why(one, longest) for one in tenants]) + scale
    )


def _why(tenant: Tenant, longest: int) -> Bar:
    whole = sum(tenant.reasons.values()) or 1
    segments = []
    for number, reason in enumerate(REASONS):
        waited = tenant.wait_total_ms * tenant.reasons.get(reason, 0) / whole
        tip = f"{tenant.channel}: {draw.format_duration(waited)} of message-time because of {reason}"
        segments.append(Segment(f"reason{number}", waited / longest, tip))
    return Bar(
        name=tenant.channel,
        segments=segments,
        value=f"median {draw.format_duration(tenant.wait_p50_ms)},"
        f" p95 {draw.format_duration(tenant.wait_p95_ms)}",
        note=f"{draw.format_duration(tenant.wait_total_ms)} of message-time",
    )


def heat_map(summary: Summary) -> str:
    """Tenants by time; the darker the cell, the longer the wait."""
    tenants = [tenant.channel for tenant in summary.tenants[:MAX_ROWS]]
    tenant_periods = [one for one in summary.tenant_periods if one.wait_p95_ms is not None]
    if not tenants or not tenant_periods:
        return ""
    longest = max(one.wait_p95_ms or 0 for one in tenant_periods)
    level = Scale(0, max(longest, 1), 0, HEAT_COLOURS - 0.001, draw.log1p)
    height = 22 * len(tenants) + 32
    across = time_scale(summary)
    cells = []
    step = timedelta(seconds=summary.period_s)
    content = [
        text(LEFT - 12, 22 * place + 15, draw.shorten(channel), "end", "name")
        for place, channel in enumerate(tenants)
    ]
    places = {channel: place for place, channel in enumerate(tenants)}
    for one in tenant_periods:
        if one.channel not in places or one.wait_p95_ms is None:
            continue
        x = across(one.start.timestamp())
        width = across((one.start + step).timestamp()) - x
        tip = (
            f"{one.channel}, {draw.format_time(one.start)}:"
            f" 95th percentile {draw.format_duration(one.wait_p95_ms)},"
            f" {draw.format_count(one.releases)} released"
        )
        y = 22 * places[one.channel] + 1
        kind = f"heat heat{int(level(one.wait_p95_ms))}"
        cells.append(draw.bar(x, y, max(width - 0.6, 0.8), 20, kind, tip=tip))
    content.append(draw.plot(across, height - 30, cells))
    content += draw.time_axis(across, height - 8, height - 30)
    # Each colour begins where the one before it ends, on the same logarithmic scale.
    edges = [(1 + max(longest, 1)) ** (place / HEAT_COLOURS) - 1 for place in range(HEAT_COLOURS)]
    keys = (
        tag("span", tag("i", class_=f"key heat{place}"), f"{draw.format_duration(edge)} +")
        for place, edge in enumerate(edges)
    )
    scale = tag("div", *keys, class_="legend heats")
    return scale + draw.chart(WIDTH, height, "Waiting time of each tenant over time", content)


def lines(summary: Summary) -> str:
    """The waiting times of the tenants that waited longest, on one scale."""
    tenants = [tenant.channel for tenant in summary.tenants[:MAX_LINES]]
    by_channel: dict[str, list[TenantPeriod]] = {channel: [] for channel in tenants}
    for one in summary.tenant_periods:
        if one.channel in by_channel:
            by_channel[one.channel].append(one)
    longest = max((one.wait_p95_ms or 0 for own in by_channel.values() for one in own), default=0)
    if not longest:
        return ""
    top, bottom = 14, 270
    up = Scale(0, longest, bottom, top, draw.log1p)
    across = time_scale(summary)
    marks = [(value, draw.format_duration(value)) for value in MARKS_MS if value <= longest]
    content = draw.value_axis(up, marks, LEFT, RIGHT)
    content += draw.time_axis(across, bottom + 22, bottom)
    middle = summary.period_s / 2
    drawn = []
    for place, (_channel, own) in enumerate(by_channel.items()):
        points: list[tuple[float, float] | None] = []
        last = None
        for one in own:
            if last is not None and (one.start - last).total_seconds() > summary.period_s * 1.5:
                points.append(None)
            if one.wait_p95_ms is not None:
                points.append((across(one.start.timestamp() + middle), up(one.wait_p95_ms)))
                last = one.start
        drawn.append(draw.line(points, f"stroke{place}"))
    content.append(draw.plot(across, bottom, drawn))
    legend = draw.legend([(f"series{place}", channel) for place, channel in enumerate(tenants)])
    return legend + draw.chart(
        WIDTH, bottom + 36, "Waiting times of the tenants that waited longest", content
    )


def time_scale(summary: Summary) -> Scale:
    """Return the time scale that all charts over time share."""
    return Scale(summary.begin.timestamp(), summary.end.timestamp(), LEFT, RIGHT)
