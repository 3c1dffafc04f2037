"""Charts of fairness: shares, caps, rate limits, Jain's index, and noisy neighbours."""

from lonnymq.charts import draw
from lonnymq.charts.bars import Bar, Segment, bars
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.summary import BURST, CAP, RATE, Summary
from lonnymq.pipeline.report.waiting_charts import LEFT, RIGHT, WIDTH, time_scale

MAX_BARS = 16
# Where the mark of a limit is on its track, so that there is room to exceed it.
LIMIT_AT = 0.6


def shares(summary: Summary) -> str:
    """A bar per tenant: its share of all releases; a mark: the share to which its weight entitles it."""
    tenants = sorted((one for one in summary.tenants if one.releases), key=lambda one: -one.share)[:MAX_BARS]
    if not tenants:
        return ""
    highest = max(max(one.share, one.entitled_share) for one in tenants) or 1
    keys = draw.legend([("series0", "share of releases"), ("mark", "entitled by weight")])
    scale = tag("p", f"A full track is {draw.format_percent(highest)} of all releases.", class_="note")
    rows = [
        Bar(
            name=one.channel,
            segments=[Segment("series0", one.share / highest)],
            mark=one.entitled_share / highest,
            value=draw.format_percent(one.share),
            note=f"entitled {draw.format_percent(one.entitled_share)}, weight {one.weight}",
        )
        for one in tenants
    ]
    return keys + bars("Share of service compared with weight", rows) + scale


def caps(summary: Summary) -> str:
    """A bar per capped tenant: its peak concurrency compared with its cap."""
    capped = [one for one in summary.tenants if one.max_concurrency is not None]
    return _limits(
        "Peak concurrency compared with the cap",
        [
            (one.channel, one.concurrency_peak, one.max_concurrency or 1, one.windows_over_cap > 0,
             f"at most {one.concurrency_peak} of {one.max_concurrency}",
             f"exceeded in {one.windows_over_cap} windows")
            for one in capped
        ],
    )  # fmt: skip


def rates(summary: Summary) -> str:
    """A bar per rate-limited tenant: the shortest gap between releases compared with the interval."""
    limited = [one for one in summary.tenants if one.release_interval_ms is not None]
    return _limits(
        "Shortest gap between releases compared with the interval",
        [
            (one.channel, one.release_interval_ms or 0, one.gap_min_ms or one.release_interval_ms or 1,
             one.gaps_too_small > 0,
             "fewer than two releases" if one.gap_min_ms is None
             else f"{draw.format_duration(one.gap_min_ms)} apart,"
             f" {draw.format_duration(one.release_interval_ms or 0)} required",
             f"{one.gaps_too_small} releases were too early")
            for one in limited
        ],
    )  # fmt: skip


def _limits(name: str, rows: list[tuple[str, float, float, bool, str, str]]) -> str:
    """Draw bars with a common limit mark; a bar beyond the mark exceeds its limit."""
    return bars(
        name,
        [
            Bar(
                name=channel,
                segments=[Segment("bad" if is_broken else "good", LIMIT_AT * value / bound)],
                mark=LIMIT_AT,
                value=label,
                note=problem if is_broken else "",
                is_bad=is_broken,
            )
            for channel, value, bound, is_broken, label, problem in rows[:MAX_BARS]
        ],
    ) if rows else ""  # fmt: skip


def jain_index(summary: Summary) -> str:
    """Jain's index in each period, between 0 and 1; no mark if fewer than two tenants competed."""
    if not any(period.jain_index is not None for period in summary.periods):
        return ""
    top, bottom = 14, 150
    up, across = Scale(0, 1, bottom, top), time_scale(summary)
    marks = [(value, f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1)]
    content = draw.value_axis(up, marks, LEFT, RIGHT)
    content += draw.time_axis(across, bottom + 22, bottom)
    drawn = []
    for period in summary.periods:
        if period.jain_index is None:
            continue
        x = across(period.start.timestamp() + summary.period_s / 2)
        tip = f"{draw.format_time(period.start)}: {period.jain_index:.3f}"
        drawn += [
            tag("line", x1=x, x2=x, y1=up(0), y2=up(period.jain_index), class_="stem"),
            draw.dot(x, up(period.jain_index), "stroke0", tip),
        ]
    content.append(draw.plot(across, bottom, drawn))
    return draw.chart(WIDTH, bottom + 36, "Jain's fairness index over time", content)


def blame(summary: Summary) -> str:
    """A bar per tenant that received more than its share while others waited: what that cost them."""
    blamed = sorted((one for one in summary.tenants if one.blame_ms >= 1), key=lambda one: -one.blame_ms)[:8]
    return bars(
        "Message-time that each tenant cost others",
        [
            Bar(
                name=one.channel,
                segments=[Segment("series1", one.blame_ms / blamed[0].blame_ms)],
                value=f"{draw.format_duration(one.blame_ms)} of message-time",
                note=f"at {draw.format_percent(one.share)} of all releases",
            )
            for one in blamed
        ],
    ) if blamed else ""  # fmt: skip


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
    drawn = []
    for start in starts:
        x = across(start.timestamp())
        width = max(across(start.timestamp() + summary.period_s) - x - 0.6, 0.8)
        tip = f"{draw.format_time(start)}: {blamed.channel} had {draw.format_percent(share[start])}"
        tip += f"; others waited {draw.format_duration(wait[start])}"
        y = up(share[start])
        drawn += [
            draw.bar(x, y, width, middle - y, "fill series1", tip=tip),
            draw.bar(x, middle + 14, width, down(wait[start]) - middle - 14, "fill series0", tip=tip),
        ]
    content.append(draw.plot(across, bottom, drawn))
    content += draw.time_axis(across, bottom + 24, bottom + 2)
    keys = draw.legend(
        [("series1", f"share of {blamed.channel}"), ("series0", "longest wait of others (p95)")]
    )
    return keys + draw.chart(
        WIDTH, bottom + 34, "The noisiest tenant, and the waiting time of others", content
    )
