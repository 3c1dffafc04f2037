"""The page: one file that needs nothing else, in the reader's light or dark."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from lonnymq.charts import draw
from lonnymq.charts.draw import number, percent, span, tag
from lonnymq.pipeline.report import service, waiting, working
from lonnymq.pipeline.report.story import Story, Tenant

# What a browser may load on behalf of this page: nothing but what is in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Crect y='4' width='2' height='4' fill='%233b6fd4'/%3E"
    "%3Crect x='3' y='1' width='2' height='7' fill='%23d9643a'/%3E"
    "%3Crect x='6' y='3' width='2' height='5' fill='%232a9d8f'/%3E%3C/svg%3E"
)


def page(story: Story, title: str = "Who waited, why, and for how long") -> str:
    """Return the report as HTML."""
    body = tag(
        "main",
        _header(story, title),
        _tiles(story),
        _who(story),
        _when(story),
        _shares(story),
        _limits(story),
        _noisy(story),
        _work(story),
        _outlook(story),
        _everybody(story),
        _footer(story),
    )
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        f'<link rel="icon" href="{ICON}"><title>{escape(title)}</title>'
        f"<style>{draw.style()}{_file('style.css')}</style>"
    )
    script = f'<div id="tip" role="status"></div><script>{_file("script.js")}</script>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}{script}</body></html>\n'


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(name: str, heading: str, words: str, *content: str) -> str:
    return tag("section", tag("h2", escape(heading)), tag("p", words), *content, id=name)


def _strong(words: str) -> str:
    return tag("strong", escape(words))


def _header(story: Story, title: str) -> str:
    longest = story.tenants[0] if story.tenants and story.tenants[0].wait_total_ms else None
    lead = (
        f"{number(story.releases)} attempts of {number(story.channels)} tenants,"
        f" from {draw.clock(story.begin)} to {draw.clock(story.end)} UTC."
    )
    if longest is not None:
        lead += (
            f" Longest waited {_strong(longest.channel)}: {span(longest.wait_mean_ms)} on average,"
            f" mostly because of {escape(longest.main_reason)}."
        )
    return tag(
        "header",
        tag("p", "LonnyMQ report", class_="over"),
        tag("h1", escape(title)),
        tag("p", lead, class_="lead"),
    )


def _tiles(story: Story) -> str:
    mean = story.wait_total_ms / story.releases if story.releases else 0
    ended = story.completed + story.failures
    broken = story.caps_broken + story.rates_broken
    held = story.caps_held + story.rates_held
    worst = min((one.jain_index for one in story.moments if one.jain_index is not None), default=None)
    tiles = [
        (number(story.completed), "messages completed", ""),
        (span(mean), "mean wait", ""),
        (
            percent(story.failures / ended if ended else 0),
            f"attempts failed, {number(story.retries)} retries",
            "",
        ),
        (number(story.buried), "buried", "bad" if story.buried else ""),
        (f"{held} of {held + broken}", "caps and rates held", "bad" if broken else "good" if held else ""),
        ("none" if worst is None else f"{worst:.2f}", "least fairness (Jain, 1 is best)", ""),
    ]
    drawn = (
        tag("div", tag("b", escape(value)), tag("span", escape(words)), class_=f"tile {kind}".strip())
        for value, words, kind in tiles
    )
    return tag("div", *drawn, class_="tiles")


def _who(story: Story) -> str:
    if not story.wait_total_ms:
        return _section("who", "Who waited, and why", "Nobody waited.")
    words = (
        "All the waiting of a tenant's messages, added up, and what held them back. A "
        f"{_strong('cap')} or {_strong('rate')} is the tenant's own limit, a {_strong('burst')} is more than"
        f" its share at once; a {_strong('noisy neighbour')} had more than its share while this one waited."
    )
    return _section("who", "Who waited, and why", words, waiting.reasons(story))


def _when(story: Story) -> str:
    words = (
        f"Within so long 95 % of the messages were released, in windows of {span(story.window_s * 1000)}"
        + (
            f"; each column shows the worst of {span(story.stretch_s * 1000)}."
            if story.stretch_s > story.window_s
            else "."
        )
    )
    charts = (waiting.heat(story), tag("h3", "Those who waited longest"), waiting.lines(story))
    return _section("when", "Waiting time over time", words, *charts) if all(charts) else ""


def _shares(story: Story) -> str:
    words = (
        "What each tenant had of all releases, against what its weight entitled it to among those that had"
        " something to do at the same time. One with little to do takes less, and leaves it to others."
    )
    charts = [service.shares(story)]
    index = service.jain(story)
    if index:
        note = "Jain's index over the service per weight of those that had a backlog throughout: 1 is fair."
        charts += [tag("h3", "Fairness among the hungry"), tag("p", note, class_="note"), index]
    return _section("shares", "Share of service against weight", words, *charts)


def _limits(story: Story) -> str:
    caps, rates = service.caps(story), service.rates(story)
    if not caps and not rates:
        return ""
    broken = story.caps_broken + story.rates_broken
    words = (
        "Every cap and every rate was held, all the time."
        if not broken
        else f"{_strong(f'{broken} limits were broken')}: bars beyond the mark."
    )
    charts = [
        tag("div", tag("h3", escape(heading)), chart)
        for heading, chart in (("Caps: the most at once", caps), ("Rates: the smallest gap", rates))
        if chart
    ]
    return _section("limits", "Caps and rates", words, tag("div", *charts, class_="pair"))


def _noisy(story: Story) -> str:
    blame = service.noisy(story)
    if not blame:
        return _section(
            "noisy",
            "The noisy neighbour",
            "There was none: nobody waited while another had more than its share.",
        )
    words = (
        "Who had more than its share while others waited. The bar is the others' waiting times the excess:"
        " what it cost them. Waiting for a limit of one's own does not count, nor that of others who had more"
        " than their share."
    )
    return _section("noisy", "The noisy neighbour", words, blame, service.neighbours(story))


def _work(story: Story) -> str:
    failing = sorted(
        (one for one in story.tenants if one.failures), key=lambda one: (-one.failures, one.channel)
    )[:10]
    rows = [
        (
            (one.channel, one.channel),
            (number(one.failures), one.failures),
            (
                percent(one.failures / max(one.completed + one.failures, 1)),
                one.failures / max(one.completed + one.failures, 1),
            ),
            (number(one.retries), one.retries),
            (number(one.expired), one.expired),
            (number(one.buried), one.buried),
        )
        for one in failing
    ]
    words = (
        "How attempts ended. Deferred ones are tried again, expired ones were lost by their worker, buried"
        " ones are dead letters."
    )
    parts = [working.throughput(story)]
    failed = working.failures(story)
    if failed:
        parts += [tag("h3", "Failures only"), failed]
    if rows:
        parts.append(_table(("tenant", "failed attempts", "of all", "retries", "expired", "buried"), rows))
    return _section("work", "Failures and retries", words, *parts)


def _outlook(story: Story) -> str:
    if story.until is None:
        return _section("outlook", "The forecast", "No backlog, and none in sight.")
    words = (
        f"Backlogs as of {_strong(draw.clock(story.until))} UTC, if arrivals and service go on as in the "
        f"{span(story.over_s * 1000)} before."
    )
    rows = [
        (
            (one.channel, one.channel),
            (number(one.backlog), one.backlog),
            (number(one.arrivals_per_hour), one.arrivals_per_hour),
            (number(one.served_per_hour), one.served_per_hour),
            (
                "never"
                if one.empty_in_s is None
                else "now"
                if not one.empty_in_s
                else f"in {span(one.empty_in_s * 1000)}",
                one.empty_in_s if one.empty_in_s is not None else 10**12,
            ),
        )
        for one in story.outlooks
    ]
    head = ("tenant", "backlog", "arrivals an hour", "served an hour", "empty")
    return _section("outlook", "The forecast", words, working.outlook(story), _table(head, rows))


def _everybody(story: Story) -> str:
    rows = [_row(one) for one in story.tenants]
    left = story.channels - len(story.tenants)
    words = "A click on a heading sorts." + (
        f" {number(left)} tenants that waited less are left out." if left > 0 else ""
    )
    head = (
        "tenant",
        "released",
        "completed",
        "mean wait",
        "95 % within",
        "longest",
        "most waiting",
        "most at once",
        "share",
        "mostly because of",
    )
    return _section("tenants", "All tenants" if left <= 0 else "Tenants", words, _table(head, rows))


def _row(one: Tenant) -> Sequence[tuple[str, object]]:
    return (
        (one.channel, one.channel),
        (number(one.releases), one.releases),
        (number(one.completed), one.completed),
        (span(one.wait_mean_ms), one.wait_mean_ms),
        (span(one.wait_p95_ms), one.wait_p95_ms),
        (span(one.wait_max_ms), one.wait_max_ms),
        (number(one.backlog_peak), one.backlog_peak),
        (
            f"{one.concurrency_peak}" + (f" of {one.max_concurrency}" if one.max_concurrency else ""),
            one.concurrency_peak,
        ),
        (percent(one.share), one.share),
        (one.main_reason, one.main_reason),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[tuple[str, object]]]) -> str:
    heads = "".join(tag("th", escape(words), class_=_kind(words)) for words in head)
    body = "".join(
        tag(
            "tr",
            *(
                tag("td", escape(shown), data_value=value, class_=_kind(head[place]))
                for place, (shown, value) in enumerate(row)
            ),
        )
        for row in rows
    )
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="table")


def _kind(heading: str) -> str | None:
    return "words" if heading == "mostly because of" else None


def _footer(story: Story) -> str:
    made = f"Made {draw.clock(story.made_at)} UTC by lonnymq." if story.made_at else ""
    return tag(
        "footer",
        tag(
            "p",
            "Times are UTC. Waiting is from when a message was due until it was leased; running from then"
            " until its attempt ended. History knows what has ended: what still waits is in the forecast.",
        ),
        tag("p", escape(made)),
    )
