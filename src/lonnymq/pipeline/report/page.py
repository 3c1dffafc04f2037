"""Renders the report: one HTML file that loads nothing and follows the light or dark colour scheme."""

from html import escape
from importlib import resources

from lonnymq.charts import draw
from lonnymq.charts.draw import format_count, format_duration, format_percent, tag
from lonnymq.pipeline.report import fairness_charts, outcome_charts, waiting_charts
from lonnymq.pipeline.report.summary import Summary
from lonnymq.pipeline.report.tables import section, table, tenants_section

# The browser may load nothing that is not in the page.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Crect y='4' width='2' height='4' fill='%233b6fd4'/%3E"
    "%3Crect x='3' y='1' width='2' height='7' fill='%23d9643a'/%3E"
    "%3Crect x='6' y='3' width='2' height='5' fill='%232a9d8f'/%3E%3C/svg%3E"
)


def render_page(summary: Summary, title: str = "Who waited, why, and for how long") -> str:
    """Return the report as HTML."""
    summary = summary.with_visible_names()
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
        tenants_section(summary),
        _footer(summary),
        data_begin=round(summary.begin.timestamp()),
        data_end=round(summary.end.timestamp()),
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
            f" {_strong(longest.channel)} has the most message-time: half of its messages waited"
            f" {format_duration(longest.wait_p50_ms)} or less, and 95 % waited"
            f" {format_duration(longest.wait_p95_ms)} or less, mostly because of"
            f" {escape(longest.main_reason)}."
        )
    return tag(
        "header",
        tag("p", "LonnyMQ report", class_="over"),
        tag("h1", escape(title)),
        tag("p", lead, class_="lead"),
    )


def _tiles(summary: Summary) -> str:
    ended = summary.completed + summary.failures
    broken = summary.caps_broken + summary.rates_broken
    held = summary.caps_held + summary.rates_held
    tiles = [
        (format_count(summary.completed), "messages completed", ""),
        (_duration(summary.wait_p50_ms), "median wait", ""),
        (_duration(summary.wait_p95_ms), "95 % of messages waited at most", ""),
        (
            format_percent(summary.failures / ended if ended else 0),
            f"attempts failed, {format_count(summary.retries)} retries",
            "",
        ),
        (format_count(summary.buried), "buried", "bad" if summary.buried else ""),
    ]
    if held + broken:
        kept = f"{held} of {held + broken}"
        tiles.append((kept, "caps and rate limits kept", "bad" if broken else "good"))
    drawn = (
        tag("div", tag("b", escape(value)), tag("span", escape(label)), class_=f"tile {kind}".strip())
        for value, label, kind in tiles
    )
    return tag("div", *drawn, class_="tiles")


def _duration(ms: int | None) -> str:
    return "none" if ms is None else format_duration(ms)


def _reasons(summary: Summary) -> str:
    if not summary.wait_total_ms:
        return section("reasons", "Who waited, and why", "No message waited.")
    text = (
        f"The {_strong('message-time')} of each tenant, by reason: the waiting times of all its messages,"
        " added up. How long a single message waited is in the median and in p95, which 95 of 100 messages"
        " did not exceed. A "
        f"{_strong('cap')} or {_strong('rate limit')} is the tenant's own; in a {_strong('burst')} the"
        f" tenant sent more than its share at once; a {_strong('noisy neighbour')} received more than its"
        " share while this tenant waited."
    )
    return section("reasons", "Who waited, and why", text, waiting_charts.reasons(summary))


def _waiting_over_time(summary: Summary) -> str:
    text = (
        "The 95th percentile of the messages' waiting times, in columns of"
        f" {format_duration(summary.period_s * 1000)}. All charts over time show the same section."
    )
    charts = (
        waiting_charts.heat_map(summary),
        tag("h3", "Tenants with the most message-time"),
        waiting_charts.lines(summary),
    )
    if not all(charts):
        return ""
    return section("waiting", "Waiting time over time", text, _zoom(summary), *charts)


def _zoom(summary: Summary) -> str:
    """The controls that choose the time shown in all charts; the page's script shows them."""
    edges = [f"{edge:%Y-%m-%dT%H:%M:%S}" for edge in (summary.begin, summary.end)]
    inputs = [
        tag("label", f"{name} ", f'<input type="datetime-local" step="1" id="{name}" value="{edge}">')
        for name, edge in zip(("from", "until"), edges, strict=True)
    ]
    hint = tag("span", "UTC. Drag across a chart to zoom in.")
    button = tag("button", "Whole time", type="button", id="whole")
    return tag("div", *inputs, button, hint, id="zoom", class_="controls", hidden="hidden")


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
            "At 1, all tenants that had a backlog throughout a window were served in proportion to their"
            " weights. If one of two received everything, it is 0.5; one of ten, 0.1. Tenants with limits of"
            " their own are left out, and a period with fewer than two of the others has no dot. The lowest"
            " value of each period is shown (Jain's index of releases per weight)."
        )
        charts += [tag("h3", "Fairness among tenants with a backlog"), tag("p", note, class_="note"), index]
    return section("shares", "Share of service compared with weight", text, *charts)


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
    return section("limits", "Caps and rate limits", text, tag("div", *charts, class_="pair"))


def _noisy_neighbour(summary: Summary) -> str:
    blame = fairness_charts.blame(summary)
    if not blame:
        return section(
            "noisy",
            "The noisy neighbour",
            "There was none: no tenant waited while another received more than its share.",
        )
    text = (
        "Tenants that received more than their share while others waited. A bar is the others' "
        "message-time multiplied by the excess: what it cost them. Waiting because of the tenant's own limit "
        "does not count, nor does the waiting of tenants that received more than their share themselves."
    )
    return section("noisy", "The noisy neighbour", text, blame, fairness_charts.noisiest_over_time(summary))


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
        parts.append(table(("tenant", "failed attempts", "of all", "retries", "expired", "buried"), rows))
    return section("outcomes", "Failures and retries", text, *parts)


def _forecast(summary: Summary) -> str:
    """The forecast, or nothing if there is no backlog and none is to be expected."""
    if summary.until is None or not summary.forecasts:
        return ""
    text = (
        f"Backlogs from {_strong(draw.format_time(summary.until))} UTC on, if messages keep arriving and"
        f" being served at the rates of the {format_duration(summary.over_s * 1000)} before. The bands are"
        " what chance may change in 19 of 20 cases, if messages arrive independently of each other."
    )
    rows = [
        (
            (one.channel, one.channel),
            (format_count(one.backlog), one.backlog),
            (format_count(one.arrivals_per_hour), one.arrivals_per_hour),
            (format_count(one.served_per_hour), one.served_per_hour),
            (
                " to ".join(format_count(edge) for edge in outcome_charts.band(one, summary.over_s, 24)),
                one.in_24_hours,
            ),
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
    head = ("tenant", "backlog", "arrivals per hour", "served per hour", "in 24 hours", "empty")
    return section("forecast", "The forecast", text, outcome_charts.forecast(summary), table(head, rows))


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
