"""How the work went: failures and retries over time, and what becomes of the backlogs."""

from lonnymq.charts import draw
from lonnymq.charts.draw import Scale, tag, text
from lonnymq.pipeline.report.story import Story
from lonnymq.pipeline.report.waiting import LEFT, RIGHT, WIDTH, time_scale

KINDS = (("good", "completed"), ("series2", "deferred"), ("series3", "expired"), ("bad", "buried"))


def throughput(story: Story) -> str:
    """Columns of ended attempts, by how they ended."""
    highest = max(
        (one.completed + one.deferred + one.expired + one.buried for one in story.moments), default=0
    )
    if not highest:
        return ""
    return _columns(story, KINDS, "Attempts that ended, by outcome")


def failures(story: Story) -> str:
    """The same without what went well: or it would hide the rest."""
    if not any(one.deferred + one.expired + one.buried for one in story.moments):
        return ""
    return _columns(story, KINDS[1:], "Attempts that failed, by outcome")


def _columns(story: Story, kinds: tuple[tuple[str, str], ...], name: str) -> str:
    top, bottom = 14, 190
    highest = max(sum(getattr(one, outcome) for _, outcome in kinds) for one in story.moments)
    marks = draw.ticks(highest)
    up, across = Scale(0, marks[-1], bottom, top), time_scale(story)
    content = draw.value_axis(up, [(value, draw.number(value)) for value in marks], LEFT, RIGHT)
    for one in story.moments:
        x = across(one.start.timestamp())
        width = max(across(one.start.timestamp() + story.stretch_s) - x - 0.8, 0.8)
        y = float(bottom)
        for kind, outcome in kinds:
            count = getattr(one, outcome)
            height = bottom - up(count)
            if count:
                y -= height
                tip = f"{draw.clock(one.start)}: {draw.number(count)} {outcome}"
                content.append(draw.bar(x, y, width, max(height, 0.5), f"fill {kind}", tip=tip))
    content += draw.time_axis(across, bottom + 22, bottom)
    return draw.legend(kinds) + draw.picture(WIDTH, bottom + 36, name, content)


def outlook(story: Story) -> str:
    """Backlogs from now on: one line per tenant, if all goes on as of late."""
    shown = story.outlooks[:6]
    if not shown:
        return ""
    top, bottom, right = 16, 220, WIDTH - 190
    highest = max(max(one.backlog, one.in_1_hour, one.in_6_hours, one.in_24_hours) for one in shown)
    marks = draw.ticks(highest)
    up, across = Scale(0, marks[-1], bottom, top), Scale(0, 24, LEFT, right)
    content = draw.value_axis(up, [(value, draw.number(value)) for value in marks], LEFT, right)
    for hour, words in ((0, "now"), (1, ""), (6, "in 6 hours"), (12, "in 12 hours"), (24, "in 24 hours")):
        content.append(text(across(hour), bottom + 22, words, "middle"))
    ends = []
    for place, one in enumerate(shown):
        hours = [(0.0, one.backlog), (1.0, one.in_1_hour), (6.0, one.in_6_hours), (24.0, one.in_24_hours)]
        if one.empty_in_s is not None and 0 < one.empty_in_s < 86400:
            # Where it becomes empty, between the hours that are known.
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
    # Names at the ends of the lines, moved apart where they would lie on each other, and not below the axis.
    ends.sort(key=lambda end: (end[0], end[1]))
    y = 0.0
    for rank, (at, place, one) in enumerate(ends):
        y = min(max(at, y + 17), bottom - 17 * (len(ends) - 1 - rank))
        words = f"{draw.shortened(one.channel, 16)}: {draw.number(one.in_24_hours)}"
        content += [
            tag("circle", cx=right + 12, cy=y - 4, r=4, class_=f"dot stroke{place}"),
            text(right + 22, y, words, "start", "value"),
        ]
    height = bottom + 34
    return draw.picture(WIDTH, height, "What becomes of the backlogs", content)
