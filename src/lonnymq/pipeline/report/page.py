"""Renders the report: one HTML file that loads nothing and follows the light or dark colour scheme."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from lonnymq.charts import draw
from lonnymq.charts.draw import format_count, format_duration, format_percent, tag
from lonnymq.pipeline.report import fairness_charts, outcome_charts, waiting_charts
from lonnymq.pipeline.report.summary import Summary, Tenant

# The browser may load nothing that is not in the page.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
REASON_HEADING = "main reason"
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Crect y='4' width='2' height='4' fill='%233b6fd4'/%3E"
    "%3Crect x='3' y='1' width='2' height='7' fill='%23d9643a'/%3E"
    "%3Crect x='6' y='3' width='2' height='5' fill='%232a9d8f'/%3E%3C/svg%3E"
)


def render_page(summary: Summary, title: str = "Who waited, why, and for how long") -> str:
    """Return the report as HTML."""
    body = tag(
        "main",
        _header(summary, title),
        _tiles(summary),
        _reasons(summary),
        _waiting_over_time(summary),
        _shares(summary),
        _limits(summary),
        _noisy_neighbour(summary),
        _outcomes(summary),
        _forecast(summary),
        _tenants(summary),
        _footer(summary),
    )
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(CONTENT_SECURITY_POLICY)}">'
        f'<link rel="icon" href="{ICON}"><title>{escape(title)}</title>'
        f"<style>{draw.style()}{_read('style.css')}</style>"
    )
    script = f'<div id="tip" role="status"></div><script>{_read("script.js")}</script>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}{script}</body></html>\n'


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(name: str, heading: str, text: str, *content: str) -> str:
    return tag("section", tag("h2", escape(heading)), tag("p", text), *content, id=name)


def _strong(text: str) -> str:
    return tag("strong", escape(text))


def _header(summary: Summary, title: str) -> str:
    longest = summary.tenants[0] if summary.tenants and summary.tenants[0].wait_total_ms else None
    lead = (
        f"{format_count(summary.releases)} attempts of {format_count(summary.channels)} tenants,"
        f" from {draw.format_time(summary.begin)} to {draw.format_time(summary.end)} UTC."
    )
    if longest is not None:
        lead += (
            f" {_strong(longest.channel)} waited longest: {format_duration(longest.wait_mean_ms)} on average,"
            f" mostly because of {escape(longest.main_reason)}."
        )
    return tag(
        "header",
        tag("p", "LonnyMQ report", class_="over"),
        tag("h1", escape(title)),
        tag("p", lead, class_="lead"),
    )


def _tiles(summary: Summary) -> str:
    mean_ms = summary.wait_total_ms / summary.releases if summary.releases else 0
    ended = summary.completed + summary.failures
    broken = summary.caps_broken + summary.rates_broken
    held = summary.caps_held + summary.rates_held
    worst_index = min((one.jain_index for one in summary.periods if one.jain_index is not None), default=None)
    tiles = [
        (format_count(summary.completed), "messages completed", ""),
        (format_duration(mean_ms), "mean wait", ""),
        (
            format_percent(summary.failures / ended if ended else 0),
            f"attempts failed, {format_count(summary.retries)} retries",
            "",
        ),
        (format_count(summary.buried), "buried", "bad" if summary.buried else ""),
        (
            f"{held} of {held + broken}",
            "caps and rate limits kept",
            "bad" if broken else "good" if held else "",
        ),
        (
            "none" if worst_index is None else f"{worst_index:.2f}",
            "lowest fairness (Jain's index, 1 is best)",
            "",
        ),
    ]
    drawn = (
        tag("div", tag("b", escape(value)), tag("span", escape(label)), class_=f"tile {kind}".strip())
        for value, label, kind in tiles
    )
    return tag("div", *drawn, class_="tiles")


def _reasons(summary: Summary) -> str:
    if not summary.wait_total_ms:
        return _section("reasons", "Who waited, and why", "No message waited.")
    text = (
        "The total waiting time of each tenant's messages, by reason. A "
        f"{_strong('cap')} or {_strong('rate limit')} is the tenant's own; in a {_strong('burst')} the"
        f" tenant sent more than its share at once; a {_strong('noisy neighbour')} received more than its"
        " share while this tenant waited."
    )
    return _section("reasons", "Who waited, and why", text, waiting_charts.reasons(summary))


def _waiting_over_time(summary: Summary) -> str:
    text = (
        "The 95th percentile of the messages' waiting times, in windows of"
        f" {format_duration(summary.window_s * 1000)}"
        + (
            f"; each column shows the highest value in {format_duration(summary.period_s * 1000)}."
            if summary.period_s > summary.window_s
            else "."
        )
    )
    charts = (
        waiting_charts.heat_map(summary),
        tag("h3", "Tenants that waited longest"),
        waiting_charts.lines(summary),
    )
    return _section("waiting", "Waiting time over time", text, *charts) if all(charts) else ""


def _shares(summary: Summary) -> str:
    text = (
        "Each tenant's share of all releases, compared with the share to which its weight entitled it among"
        " the tenants that had messages at the same time. A tenant with few messages takes less and leaves"
        " the rest to others."
    )
    charts = [fairness_charts.shares(summary)]
    index = fairness_charts.jain_index(summary)
    if index:
        note = (
            "Jain's index over releases per weight of the tenants that had a backlog throughout; 1 is fair."
        )
        charts += [tag("h3", "Fairness among tenants with a backlog"), tag("p", note, class_="note"), index]
    return _section("shares", "Share of service compared with weight", text, *charts)


def _limits(summary: Summary) -> str:
    caps, rates = fairness_charts.caps(summary), fairness_charts.rates(summary)
    if not caps and not rates:
        return ""
    broken = summary.caps_broken + summary.rates_broken
    text = (
        "No cap and no rate limit was exceeded."
        if not broken
        else f"{_strong(f'Limits exceeded: {broken}')}. Their bars extend beyond the mark."
    )
    charts = [
        tag("div", tag("h3", escape(heading)), chart)
        for heading, chart in (("Caps: peak concurrency", caps), ("Rate limits: shortest gap", rates))
        if chart
    ]
    return _section("limits", "Caps and rate limits", text, tag("div", *charts, class_="pair"))


def _noisy_neighbour(summary: Summary) -> str:
    blame = fairness_charts.blame(summary)
    if not blame:
        return _section(
            "noisy",
            "The noisy neighbour",
            "There was none: no tenant waited while another received more than its share.",
        )
    text = (
        "Tenants that received more than their share while others waited. A bar is the others' waiting time "
        "multiplied by the excess: what it cost them. Waiting because of the tenant's own limit does not "
        "count, nor does the waiting of tenants that received more than their share themselves."
    )
    return _section("noisy", "The noisy neighbour", text, blame, fairness_charts.noisiest_over_time(summary))


def _outcomes(summary: Summary) -> str:
    failing = sorted(
        (one for one in summary.tenants if one.failures), key=lambda one: (-one.failures, one.channel)
    )[:10]
    rows = [
        (
            (one.channel, one.channel),
            (format_count(one.failures), one.failures),
            (
                format_percent(one.failures / max(one.completed + one.failures, 1)),
                one.failures / max(one.completed + one.failures, 1),
            ),
            (format_count(one.retries), one.retries),
            (format_count(one.expired), one.expired),
            (format_count(one.buried), one.buried),
        )
        for one in failing
    ]
    text = (
        "Attempts by outcome. Deferred messages are tried again, expired attempts were lost by their"
        " worker, and buried messages are dead letters."
    )
    parts = [outcome_charts.throughput(summary)]
    failed = outcome_charts.failures(summary)
    if failed:
        parts += [tag("h3", "Failures only"), failed]
    if rows:
        parts.append(_table(("tenant", "failed attempts", "of all", "retries", "expired", "buried"), rows))
    return _section("outcomes", "Failures and retries", text, *parts)


def _forecast(summary: Summary) -> str:
    if summary.until is None:
        return _section("forecast", "The forecast", "There is no backlog, and none is expected.")
    text = (
        f"Backlogs from {_strong(draw.format_time(summary.until))} UTC on, if messages keep arriving and"
        f" being served at the rates of the {format_duration(summary.over_s * 1000)} before."
    )
    rows = [
        (
            (one.channel, one.channel),
            (format_count(one.backlog), one.backlog),
            (format_count(one.arrivals_per_hour), one.arrivals_per_hour),
            (format_count(one.served_per_hour), one.served_per_hour),
            (
                "never"
                if one.empty_in_s is None
                else "now"
                if not one.empty_in_s
                else f"in {format_duration(one.empty_in_s * 1000)}",
                one.empty_in_s if one.empty_in_s is not None else 10**12,
            ),
        )
        for one in summary.forecasts
    ]
    head = ("tenant", "backlog", "arrivals per hour", "served per hour", "empty")
    return _section("forecast", "The forecast", text, outcome_charts.forecast(summary), _table(head, rows))


def _tenants(summary: Summary) -> str:
    rows = [_row(one) for one in summary.tenants]
    omitted = summary.channels - len(summary.tenants)
    text = "Click a heading to sort." + (
        f" {format_count(omitted)} tenants that waited less are not shown." if omitted > 0 else ""
    )
    head = (
        "tenant",
        "released",
        "completed",
        "mean wait",
        "95th percentile",
        "longest wait",
        "peak backlog",
        "peak concurrency",
        "share",
        REASON_HEADING,
    )
    return _section("tenants", "All tenants" if omitted <= 0 else "Tenants", text, _table(head, rows))


def _row(one: Tenant) -> Sequence[tuple[str, object]]:
    return (
        (one.channel, one.channel),
        (format_count(one.releases), one.releases),
        (format_count(one.completed), one.completed),
        (format_duration(one.wait_mean_ms), one.wait_mean_ms),
        (format_duration(one.wait_p95_ms), one.wait_p95_ms),
        (format_duration(one.wait_max_ms), one.wait_max_ms),
        (format_count(one.backlog_peak), one.backlog_peak),
        (
            f"{one.concurrency_peak}" + (f" of {one.max_concurrency}" if one.max_concurrency else ""),
            one.concurrency_peak,
        ),
        (format_percent(one.share), one.share),
        (one.main_reason, one.main_reason),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[tuple[str, object]]]) -> str:
    heads = "".join(tag("th", escape(heading), class_=_cell_class(heading)) for heading in head)
    body = "".join(
        tag(
            "tr",
            *(
                tag("td", escape(shown), data_value=value, class_=_cell_class(head[place]))
                for place, (shown, value) in enumerate(row)
            ),
        )
        for row in rows
    )
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="table")


def _cell_class(heading: str) -> str | None:
    return "text" if heading == REASON_HEADING else None


def _footer(summary: Summary) -> str:
    made = f"Made by LonnyMQ, {draw.format_time(summary.made_at)} UTC." if summary.made_at else ""
    return tag(
        "footer",
        tag(
            "p",
            "Times are UTC. A message waits from when it is due until it is leased, and runs from then until"
            " its attempt ends. Only attempts that have ended are counted; messages that still wait are in"
            " the forecast.",
        ),
        tag("p", escape(made)),
    )
