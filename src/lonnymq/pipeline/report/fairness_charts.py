"""Charts of fairness: shares, caps, rate limits, Jain's index, and noisy neighbours."""

from lonnymq.charts import draw
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.summary import BURST, CAP, RATE, Summary, Tenant
from lonnymq.pipeline.report.waiting_charts import LEFT, RIGHT, WIDTH, time_scale

MAX_BARS = 16


def shares(summary: Summary) -> str:
    """A bar per tenant: its share of all releases; a mark: the share to which its weight entitles it."""
    tenants = sorted((one for one in summary.tenants if one.releases), key=lambda one: -one.share)[:MAX_BARS]
    if not tenants:
        return ""
    highest = max(max(one.share, one.entitled_share) for one in tenants)
    across = Scale(0, highest, LEFT, WIDTH - 150)
    content = []
    for place, one in enumerate(tenants):
        y = 10 + 26 * place
        entitled = across(one.entitled_share)
        tip = (
            f"{one.channel}: {draw.format_percent(one.share)} of all releases;"
            f" its weight of {one.weight} entitled it to {draw.format_percent(one.entitled_share)}"
        )
        content += [
            text(LEFT - 12, y + 13, draw.shorten(one.channel), "end", "name"),
            draw.bar(LEFT, y, across(highest) - LEFT, 16, "track", rx=3),
            draw.bar(LEFT, y, max(across(one.share) - LEFT, 1), 16, "fill series0", tip=tip, rx=3),
            draw.bar(entitled - 1.5, y - 3, 3, 22, "mark", rx=1.5),
            text(
                across(highest) + 12,
                y + 13,
                f"{draw.format_percent(one.share)}, weight {one.weight}",
                "start",
                "value",
            ),
        ]
    keys = draw.legend([("series0", "share of releases"), ("mark", "entitled by weight")])
    return keys + draw.chart(WIDTH, 26 * len(tenants) + 20, "Share of service compared with weight", content)


def caps(summary: Summary) -> str:
    """A bar per capped tenant: its peak concurrency compared with its cap."""
    capped = [one for one in summary.tenants if one.max_concurrency is not None]
    return _bullets(
        [
            (one, one.concurrency_peak, one.max_concurrency or 1, one.windows_over_cap > 0,
             f"at most {one.concurrency_peak} of {one.max_concurrency}",
             f"{one.channel}: cap exceeded in {one.windows_over_cap} windows")
            for one in capped
        ],
        "Peak concurrency compared with the cap",
    )  # fmt: skip


def rates(summary: Summary) -> str:
    """A bar per rate-limited tenant: the shortest gap between releases compared with the interval."""
    limited = [one for one in summary.tenants if one.release_interval_ms is not None]
    return _bullets(
        [
            (one, one.release_interval_ms or 0, one.gap_min_ms or one.release_interval_ms or 1,
             one.gaps_too_small > 0,
             "fewer than two releases" if one.gap_min_ms is None
             else f"{draw.format_duration(one.gap_min_ms)} apart,"
             f" at least {draw.format_duration(one.release_interval_ms or 0)} required",
             f"{one.channel}: {one.gaps_too_small} releases were too early")
            for one in limited
        ],
        "Shortest gap between releases compared with the interval",
    )  # fmt: skip


def _bullets(rows: list[tuple[Tenant, float, float, bool, str, str]], name: str) -> str:
    """Draw bars with a common limit mark; a bar beyond the mark exceeds its limit."""
    if not rows:
        return ""
    width, left = 470, 130
    limit = left + (width - left) * 0.55
    content = []
    for place, (one, value, bound, is_broken, label, tip) in enumerate(rows[:MAX_BARS]):
        y = 12 + 46 * place
        end = min(left + (limit - left) * value / bound, width - 4.0)
        kind = "bad" if is_broken else "good"
        content += [
            text(left - 12, y + 14, draw.shorten(one.channel, 16), "end", "name"),
            draw.bar(left, y + 2, width - left, 14, "track", rx=3),
            draw.bar(left, y + 2, max(end - left, 2), 14, f"fill {kind}", tip=tip, rx=3),
            draw.bar(limit - 1.5, y - 2, 3, 22, "mark", rx=1.5),
            text(left, y + 32, label, "start", "bad-label" if is_broken else "label"),
        ]
    return draw.chart(width, 46 * len(rows[:MAX_BARS]) + 12, name, content)


def jain_index(summary: Summary) -> str:
    """Jain's index in each period, between 0 and 1; no mark if fewer than two tenants competed."""
    if not any(period.jain_index is not None for period in summary.periods):
        return ""
    top, bottom = 14, 150
    up, across = Scale(0, 1, bottom, top), time_scale(summary)
    marks = [(value, f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1)]
    content = draw.value_axis(up, marks, LEFT, RIGHT)
    content += draw.time_axis(across, bottom + 22, bottom)
    for period in summary.periods:
        if period.jain_index is None:
            continue
        x = across(period.start.timestamp() + summary.period_s / 2)
        content += [
            tag("line", x1=x, x2=x, y1=up(0), y2=up(period.jain_index), class_="stem"),
            tag("circle", cx=x, cy=up(period.jain_index), r=3.5, class_="dot stroke0",
                data_tip=f"{draw.format_time(period.start)}: {period.jain_index:.3f}"),
        ]  # fmt: skip
    return draw.chart(WIDTH, bottom + 36, "Jain's fairness index over time", content)


def blame(summary: Summary) -> str:
    """A bar per tenant that received more than its share while others waited: what that cost them."""
    blamed = sorted((one for one in summary.tenants if one.blame_ms >= 1), key=lambda one: -one.blame_ms)[:8]
    if not blamed:
        return ""
    across = Scale(0, blamed[0].blame_ms, LEFT, WIDTH - 250)
    content = []
    for place, one in enumerate(blamed):
        y = 10 + 30 * place
        width = max(across(one.blame_ms) - LEFT, 1)
        label = f"{draw.format_duration(one.blame_ms)}, at {draw.format_percent(one.share)} of releases"
        content += [
            text(LEFT - 12, y + 15, draw.shorten(one.channel), "end", "name"),
            draw.bar(LEFT, y, width, 20, "fill series1", tip=f"{one.channel}: {label}", rx=3),
            text(across(one.blame_ms) + 10, y + 15, label, "start", "value"),
        ]
    return draw.chart(WIDTH, 30 * len(blamed) + 16, "Waiting time that each tenant caused others", content)


def noisiest_over_time(summary: Summary) -> str:
    """The noisiest tenant's share over time and, below, how long the others waited at the same time."""
    blamed = max(summary.tenants, key=lambda one: one.blame_ms, default=None)
    if blamed is None or blamed.blame_ms < 1:
        return ""
    starts = [period.start for period in summary.periods]
    share = dict.fromkeys(starts, 0.0)
    wait = dict.fromkeys(starts, 0)
    own_reasons = (CAP, RATE, BURST)
    self_limited = {one.channel for one in summary.tenants if one.main_reason in own_reasons}
    for one in summary.tenant_periods:
        if one.start not in share:
            continue
        if one.channel == blamed.channel:
            share[one.start] = one.share
        elif one.channel not in self_limited:
            wait[one.start] = max(wait[one.start], one.wait_p95_ms or 0)
    middle, bottom = 105, 230
    across = time_scale(summary)
    up, down = Scale(0, 1, middle, 14), Scale(0, max([*wait.values(), 1]), middle + 14, bottom)
    content = [text(LEFT - 12, 24, "100 %", "end"), text(LEFT - 12, middle, "its share", "end")]
    content += [
        text(LEFT - 12, middle + 26, "others' wait", "end"),
        text(LEFT - 12, bottom, draw.format_duration(down.high), "end"),
    ]
    for start in starts:
        x = across(start.timestamp())
        width = max(across(start.timestamp() + summary.period_s) - x - 0.6, 0.8)
        tip = f"{draw.format_time(start)}: {blamed.channel} had {draw.format_percent(share[start])}"
        tip += f"; others waited {draw.format_duration(wait[start])}"
        y = up(share[start])
        content += [
            draw.bar(x, y, width, middle - y, "fill series1", tip=tip),
            draw.bar(x, middle + 14, width, down(wait[start]) - middle - 14, "fill series0", tip=tip),
        ]
    content += draw.time_axis(across, bottom + 24, bottom + 2)
    keys = draw.legend(
        [("series1", f"share of {blamed.channel}"), ("series0", "longest wait of others (p95)")]
    )
    return keys + draw.chart(
        WIDTH, bottom + 34, "The noisiest tenant, and the waiting time of others", content
    )
