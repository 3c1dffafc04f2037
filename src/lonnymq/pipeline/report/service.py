"""What tenants had, against what was theirs: shares, caps, rates, fairness, and who was in the way."""

from lonnymq.charts import draw
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.story import BURST, CAP, RATE, Story, Tenant
from lonnymq.pipeline.report.waiting import LEFT, RIGHT, WIDTH, time_scale

MOST = 16


def shares(story: Story) -> str:
    """A bar is what a tenant had of all releases, the mark what its weight entitled it to."""
    tenants = sorted((one for one in story.tenants if one.releases), key=lambda one: -one.share)[:MOST]
    if not tenants:
        return ""
    most = max(max(one.share, one.entitled_share) for one in tenants)
    across = Scale(0, most, LEFT, WIDTH - 150)
    content = []
    for place, one in enumerate(tenants):
        y = 10 + 26 * place
        entitled = across(one.entitled_share)
        tip = (
            f"{one.channel}: {draw.percent(one.share)} of all releases; weight {one.weight} entitled it to"
            f" {draw.percent(one.entitled_share)} of what was released while it had something to do"
        )
        content += [
            text(LEFT - 12, y + 13, draw.shortened(one.channel), "end", "name"),
            draw.bar(LEFT, y, across(most) - LEFT, 16, "track", rx=3),
            draw.bar(LEFT, y, max(across(one.share) - LEFT, 1), 16, "fill series0", tip=tip, rx=3),
            draw.bar(entitled - 1.5, y - 3, 3, 22, "mark", rx=1.5),
            text(
                across(most) + 12, y + 13, f"{draw.percent(one.share)}, weight {one.weight}", "start", "value"
            ),
        ]
    keys = draw.legend([("series0", "share of releases"), ("mark", "entitled by weight")])
    return keys + draw.picture(WIDTH, 26 * len(tenants) + 20, "Share of service against weight", content)


def caps(story: Story) -> str:
    """How many ran at once at most, against how many may."""
    capped = [one for one in story.tenants if one.max_concurrency is not None]
    return _bullets(
        [
            (one, one.concurrency_peak, one.max_concurrency or 1, one.windows_over_cap > 0,
             f"at most {one.concurrency_peak} of {one.max_concurrency}",
             f"{one.channel}: {one.windows_over_cap} windows with more than its cap")
            for one in capped
        ],
        "Peak concurrency against the cap",
    )  # fmt: skip


def rates(story: Story) -> str:
    """The smallest time between releases, against the least it may be."""
    limited = [one for one in story.tenants if one.release_interval_ms is not None]
    return _bullets(
        [
            (one, one.release_interval_ms or 0, one.gap_min_ms or one.release_interval_ms or 1,
             one.gaps_too_small > 0,
             "no two releases" if one.gap_min_ms is None
             else f"{draw.span(one.gap_min_ms)} apart, may be {draw.span(one.release_interval_ms or 0)}",
             f"{one.channel}: {one.gaps_too_small} releases came too soon")
            for one in limited
        ],
        "Smallest gap between releases against the interval",
    )  # fmt: skip


def _bullets(rows: list[tuple[Tenant, float, float, bool, str, str]], name: str) -> str:
    """The limit is at one place for all; a bar that reaches it is full, one beyond it is wrong."""
    if not rows:
        return ""
    width, left = 470, 130
    limit = left + (width - left) * 0.55
    content = []
    for place, (one, value, bound, is_broken, words, tip) in enumerate(rows[:MOST]):
        y = 12 + 46 * place
        end = min(left + (limit - left) * value / bound, width - 4.0)
        kind = "bad" if is_broken else "good"
        content += [
            text(left - 12, y + 14, draw.shortened(one.channel, 16), "end", "name"),
            draw.bar(left, y + 2, width - left, 14, "track", rx=3),
            draw.bar(left, y + 2, max(end - left, 2), 14, f"fill {kind}", tip=tip, rx=3),
            draw.bar(limit - 1.5, y - 2, 3, 22, "mark", rx=1.5),
            text(left, y + 32, words, "start", "bad-words" if is_broken else "label"),
        ]
    return draw.picture(width, 46 * len(rows[:MOST]) + 12, name, content)


def jain(story: Story) -> str:
    """One line between 0 and 1; broken where fewer than two tenants competed."""
    if not any(moment.jain_index is not None for moment in story.moments):
        return ""
    top, bottom = 14, 150
    up, across = Scale(0, 1, bottom, top), time_scale(story)
    marks = [(value, f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1)]
    content = draw.value_axis(up, marks, LEFT, RIGHT)
    content += draw.time_axis(across, bottom + 22, bottom)
    for moment in story.moments:
        if moment.jain_index is None:
            continue
        x = across(moment.start.timestamp() + story.stretch_s / 2)
        content += [
            tag("line", x1=x, x2=x, y1=up(0), y2=up(moment.jain_index), class_="stem"),
            tag("circle", cx=x, cy=up(moment.jain_index), r=3.5, class_="dot stroke0",
                data_tip=f"{draw.clock(moment.start)}: {moment.jain_index:.3f}"),
        ]  # fmt: skip
    return draw.picture(WIDTH, bottom + 36, "Jain's fairness index over time", content)


def noisy(story: Story) -> str:
    """Who had more than its share while others waited, as a bar of what that cost them."""
    blamed = sorted((one for one in story.tenants if one.blame_ms >= 1), key=lambda one: -one.blame_ms)[:8]
    if not blamed:
        return ""
    across = Scale(0, blamed[0].blame_ms, LEFT, WIDTH - 250)
    content = []
    for place, one in enumerate(blamed):
        y = 10 + 30 * place
        width = max(across(one.blame_ms) - LEFT, 1)
        words = f"{draw.span(one.blame_ms)}, at {draw.percent(one.share)} of releases"
        content += [
            text(LEFT - 12, y + 15, draw.shortened(one.channel), "end", "name"),
            draw.bar(LEFT, y, width, 20, "fill series1", tip=f"{one.channel}: {words}", rx=3),
            text(across(one.blame_ms) + 10, y + 15, words, "start", "value"),
        ]
    return draw.picture(WIDTH, 30 * len(blamed) + 16, "Others' waiting that each tenant caused", content)


def neighbours(story: Story) -> str:
    """The noisiest tenant's share over time, above; below, how long the others waited then."""
    blamed = max(story.tenants, key=lambda one: one.blame_ms, default=None)
    if blamed is None or blamed.blame_ms < 1:
        return ""
    starts = [moment.start for moment in story.moments]
    share = dict.fromkeys(starts, 0.0)
    wait = dict.fromkeys(starts, 0)
    own = (CAP, RATE, BURST)
    excused = {one.channel for one in story.tenants if one.main_reason in own}
    for one in story.readings:
        if one.start not in share:
            continue
        if one.channel == blamed.channel:
            share[one.start] = one.share
        elif one.channel not in excused:
            wait[one.start] = max(wait[one.start], one.wait_p95_ms or 0)
    middle, bottom = 105, 230
    across = time_scale(story)
    up, down = Scale(0, 1, middle, 14), Scale(0, max([*wait.values(), 1]), middle + 14, bottom)
    content = [text(LEFT - 12, 24, "100 %", "end"), text(LEFT - 12, middle, "its share", "end")]
    content += [
        text(LEFT - 12, middle + 26, "others' wait", "end"),
        text(LEFT - 12, bottom, draw.span(down.high), "end"),
    ]
    for start in starts:
        x = across(start.timestamp())
        width = max(across(start.timestamp() + story.stretch_s) - x - 0.6, 0.8)
        tip = f"{draw.clock(start)}: {blamed.channel} had {draw.percent(share[start])}"
        tip += f"; others waited {draw.span(wait[start])}"
        y = up(share[start])
        content += [
            draw.bar(x, y, width, middle - y, "fill series1", tip=tip),
            draw.bar(x, middle + 14, width, down(wait[start]) - middle - 14, "fill series0", tip=tip),
        ]
    content += draw.time_axis(across, bottom + 24, bottom + 2)
    keys = draw.legend(
        [("series1", f"share of {blamed.channel}"), ("series0", "longest wait of others (95 %)")]
    )
    return keys + draw.picture(WIDTH, bottom + 34, "The noisiest tenant, and how long others waited", content)
