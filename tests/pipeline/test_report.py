"""The report in a real browser, and its drawing functions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lonnymq.charts import draw
from lonnymq.pipeline.report.notebook import ReportPage
from lonnymq.pipeline.report.page import render_page
from lonnymq.pipeline.report.summarise import period_length
from lonnymq.pipeline.report.summary import REASONS, BacklogForecast, Period, Summary, Tenant, TenantPeriod
from tests.browser import Browser

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
WIDE = ["W" * 255, "日本語テナント" * 9, "x" * 255]
SECTIONS = ["reasons", "waiting", "shares", "limits", "noisy", "outcomes", "forecast", "tenants"]

IS_EVERY_CHART_TALL = """
[...document.querySelectorAll('svg:not(.plot)')].every(svg => svg.getBoundingClientRect().height > 40)
"""
# Marks that extend beyond their chart.
OUTSIDE = """
[...document.querySelectorAll('svg:not(.plot)')].flatMap(svg => {
  const a = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('rect:not(.chosen), circle, text')].filter(mark => {
    const b = mark.getBoundingClientRect();
    return b.left < a.left - 2 || b.right > a.right + 2 || b.top < a.top - 2 || b.bottom > a.bottom + 2;
  });
}).map(mark => mark.outerHTML)
"""
# Labels that overlap.
OVERLAPS = """
[...document.querySelectorAll('svg:not(.plot)')].flatMap(svg => {
  const words = [...svg.querySelectorAll('text')]
    .map(mark => [mark.getBoundingClientRect(), mark.textContent]);
  return words.flatMap(([a, one], place) => words.slice(place + 1).filter(([b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3
  ).map(([b, other]) => one + ' | ' + other));
})
"""
MIDDLE_OF_HEAT = """
(box => [box.x + box.width / 2, box.y + box.height / 2])
(document.querySelector('.heat').getBoundingClientRect())
"""


def example_summary(tenants: int = 12, periods: int = 24) -> Summary:
    """A summary with one of everything, and a tenant whose name tries to break the page."""
    names = [EVIL, "capped", "throttled", *WIDE, *(f"tenant-{n:02}" for n in range(tenants - 6))]
    made = [
        Tenant(
            channel=name,
            arrivals=100,
            releases=100 + place,
            completed=90,
            failures=10,
            retries=8,
            buried=2,
            wait_total_ms=10 ** (8 - place // 2) if place < 14 else 5,
            wait_p50_ms=300,
            wait_p95_ms=1_000,
            wait_max_ms=5_000,
            backlog_peak=50,
            share=1 / tenants,
            entitled_share=1.5 / tenants,
            concurrency_peak=5 if name == "capped" else 3,
            max_concurrency=4 if name == "capped" else None,
            windows_over_cap=3 if name == "capped" else 0,
            gap_min_ms=600 if name == "throttled" else 4,
            release_interval_ms=500 if name == "throttled" else None,
            blame_ms=60_000.0 / (place + 1),
            reasons={reason: 10**6 * (1 + (n + place) % 3) for n, reason in enumerate(REASONS)},
        )
        for place, name in enumerate(names)
    ]
    times = [BEGIN + timedelta(hours=n) for n in range(periods)]
    return Summary(
        begin=BEGIN,
        end=BEGIN + timedelta(hours=periods),
        window_s=60,
        period_s=3600,
        channels=tenants + 7,
        tenants=tuple(made),
        periods=tuple(
            Period(
                start=time,
                arrivals=50,
                completed=100 + 10 * (n % 5),
                deferred=n % 4,
                expired=n % 2,
                buried=n % 3,
                retries=2,
                jain_index=None if n % 3 else 0.9 + n / 1000,
            )
            for n, time in enumerate(times)
        ),
        tenant_periods=tuple(
            TenantPeriod(
                name, time, None if (n + place) % 7 == 0 else 10 * 3 ** ((n + place) % 9), 20, 0.3, 40
            )
            for place, name in enumerate(names)
            for n, time in enumerate(times)
        ),
        forecasts=(
            BacklogForecast(EVIL, 900, 1_000.0, 1_300.0, 600, 0, 0, 10_800),
            BacklogForecast("growing", 10, 200.0, 100.0, 110, 610, 2_410, None),
            *(BacklogForecast(f"idle-{n}", 0, 5.0, 5.0 - n, n, 6 * n, 24 * n, 0) for n in range(4)),
        ),
        until=BEGIN + timedelta(hours=periods),
        made_at=BEGIN,
        releases=1_266,
        completed=1_080,
        failures=120,
        buried=24,
        retries=96,
        wait_total_ms=10**8,
        wait_p50_ms=300,
        wait_p95_ms=90_000,
        caps_broken=1,
        rates_held=1,
    )


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (400, False)])
def test_a_browser_shows_every_section_without_errors_or_requests(
    tmp_path: Path, browser: Browser, width: int, is_dark: bool
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(example_summary()), encoding="utf-8")
    browser.open(path.as_uri(), width=width, is_dark=is_dark)
    assert browser.evaluate("[...document.querySelectorAll('section')].map(s => s.id)") == SECTIONS
    # The page does not scroll sideways: wide content scrolls inside its own frame.
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate(IS_EVERY_CHART_TALL)
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(OVERLAPS) == []
    assert not browser.evaluate("/NaN|undefined|None|inf/.test(document.querySelector('main').innerHTML)")
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 21, 27)" if is_dark else "rgb(251, 250, 248)")
    assert len(browser.page.screenshot()) > 20_000
    browser.page.emulate_media(media="print")
    assert browser.evaluate("getComputedStyle(document.body).color") == "rgb(29, 36, 48)", "dark on paper"
    browser.page.emulate_media(media="screen")
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith(("file://", "data:"))] == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<script>nowhere()</script>", "nowhere is not defined"),
        ("<script>console.log('a remark')</script>", "a remark"),
        ("<img src='http://localhost:1/x.png'>", "Content Security Policy"),
    ],
)
def test_errors_in_a_page_are_noticed(tmp_path: Path, browser: Browser, content: str, problem: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(example_summary()).replace("</body>", f"{content}</body>"), encoding="utf-8")
    browser.open(path.as_uri())
    assert [one for one in browser.problems if problem in one]


def test_time_labels_with_seconds_fit_on_the_axis(tmp_path: Path, browser: Browser) -> None:
    made = example_summary()
    short = replace(
        made, end=BEGIN + timedelta(seconds=10), period_s=1, window_s=1, tenant_periods=(), periods=()
    )
    path = tmp_path / "report.html"
    times = tuple(
        replace(one, start=BEGIN + timedelta(seconds=n % 10))
        for n, one in enumerate(made.tenant_periods[:240])
    )
    path.write_text(render_page(replace(short, tenant_periods=times)), encoding="utf-8")
    browser.open(path.as_uri())
    assert browser.evaluate(OUTSIDE) == []


def test_tenant_names_are_escaped(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(example_summary()), encoding="utf-8")
    browser.open(path.as_uri())
    assert browser.evaluate("document.querySelectorAll('script:not([type])').length") == 1
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert EVIL in browser.evaluate(
        "[...document.querySelectorAll('td:first-child')].map(t => t.textContent)"
    )
    assert browser.problems == []


def test_marks_have_tooltips_and_headings_sort(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(example_summary()), encoding="utf-8")
    browser.open(path.as_uri())
    browser.evaluate("document.getElementById('waiting').scrollIntoView()")
    box = browser.evaluate(MIDDLE_OF_HEAT)
    browser.page.mouse.move(*box)
    assert browser.evaluate("document.getElementById('tip').className") == "is-shown"
    assert "95th percentile" in browser.evaluate("document.getElementById('tip').textContent")
    column = "[...document.querySelectorAll('#tenants tbody tr')].map(r => Number(r.cells[1].dataset.value))"
    browser.evaluate("document.querySelectorAll('#tenants th')[1].click()")
    first = browser.evaluate(column)
    browser.evaluate("document.querySelectorAll('#tenants th')[1].click()")
    assert first == sorted(first, reverse=True) == browser.evaluate(column)[::-1]


BAR_WIDTHS = """
[...document.querySelectorAll('#reasons .bar-track')].map(track =>
  [...track.querySelectorAll('.part')].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0)
  / track.getBoundingClientRect().width)
"""
COLOURS = """
names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue(name))
"""
NAMES = "[...document.querySelectorAll('#tenants td:first-child')].map(cell => cell.textContent)"
VIEWS = """
[...new Set([...document.querySelectorAll('svg.plot')].map(one => one.getAttribute('viewBox').split(' ')[2]))]
"""
LABELS = "[...document.querySelector('g.time-axis').querySelectorAll('text')].map(mark => mark.textContent)"
FIRST_PLOT = "(box => [box.x, box.y, box.width])(document.querySelector('svg.plot').getBoundingClientRect())"


def test_the_length_of_a_bar_is_the_tenants_message_time(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    made = example_summary()
    path.write_text(render_page(made), encoding="utf-8")
    browser.open(path.as_uri())
    longest = made.tenants[0].wait_total_ms
    expected = [one.wait_total_ms / longest for one in made.tenants][:14]
    assert browser.evaluate(BAR_WIDTHS) == pytest.approx(expected, abs=0.02)
    assert "median 300 ms, p95 1.0 s" in browser.evaluate("document.getElementById('reasons').innerText")
    of_reasons = browser.page.evaluate(COLOURS, [f"--r{n}" for n in range(5)])
    of_tenants = browser.page.evaluate(COLOURS, [f"--c{n}" for n in range(6)])
    assert len({*of_reasons, *of_tenants}) == 11


def test_all_tenants_can_be_searched_and_sorted(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    many = [Tenant(channel=f"shop-{n:04}", releases=n, wait_total_ms=5_000 - n) for n in range(3_000)]
    tenants = (*many, Tenant(channel=EVIL, releases=7), Tenant(channel="\u202egnp.exe\u200b", releases=7))
    page = render_page(replace(example_summary(), tenants=tenants, channels=len(tenants)))
    path.write_text(page, encoding="utf-8")
    browser.open(path.as_uri())
    assert len(browser.evaluate(NAMES)) == 40
    browser.evaluate("document.querySelectorAll('#tenants th')[1].click()")
    assert browser.evaluate(NAMES)[:2] == ["shop-2999", "shop-2998"]
    browser.page.fill("#search", "SHOP-271")
    assert browser.evaluate(NAMES) == [f"shop-271{n}" for n in range(9, -1, -1)]
    assert browser.evaluate("document.getElementById('found').textContent") == "10 of 3,002 tenants"
    browser.page.fill("#search", "<script>")
    assert browser.evaluate(NAMES) == [EVIL]
    # Nothing in a name is invisible, or changes the direction of what follows.
    browser.page.fill("#search", "exe")
    assert browser.evaluate(NAMES) == ["\\u202egnp.exe\\u200b"]
    browser.page.fill("#search", "")
    browser.page.click("#more")
    assert len(browser.evaluate(NAMES)) == 240
    assert browser.problems == []


def test_dragging_across_a_chart_zooms_all_charts(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(example_summary()), encoding="utf-8")
    browser.open(path.as_uri())
    of_the_page = browser.evaluate(LABELS)
    [whole] = map(float, browser.evaluate(VIEWS))
    browser.page.click("#whole")
    assert browser.evaluate(LABELS) == of_the_page
    browser.evaluate("document.querySelector('svg.plot').scrollIntoView({block: 'center'})")
    x, y, width = browser.evaluate(FIRST_PLOT)
    browser.page.mouse.move(x + width / 4, y + 30)
    browser.page.mouse.down()
    browser.page.mouse.move(x + width / 2, y + 30)
    browser.page.mouse.up()
    [section] = browser.evaluate(VIEWS)
    assert float(section) == pytest.approx(whole / 4, rel=0.02)
    assert browser.evaluate(LABELS)[0] in ("06:00", "07:00")
    browser.page.fill("#from", "2030-01-01T12:00:00")
    browser.page.fill("#until", "2030-01-01T12:10:00")
    assert browser.evaluate(LABELS)[:2] == ["12:00", "12:02"]
    browser.page.click("#whole")
    assert [float(one) for one in browser.evaluate(VIEWS)] == [whole]
    assert browser.problems == []


def test_a_notebook_shows_the_report_in_a_frame(tmp_path: Path, browser: Browser) -> None:
    page = ReportPage(render_page(example_summary()))
    assert "LonnyMQ" not in repr(page)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>Notebook</title>{page._repr_html_()}", encoding="utf-8")
    browser.open(path.as_uri())
    frame = browser.page.frames[1]
    frame.wait_for_selector("#zoom:not([hidden])")
    assert frame.evaluate("[...document.querySelectorAll('section')].map(s => s.id)") == SECTIONS
    assert browser.problems == []


def test_a_report_without_any_activity_is_rendered(tmp_path: Path, browser: Browser) -> None:
    quiet = replace(
        example_summary(), tenants=(Tenant(channel="a"),), periods=(), tenant_periods=(), forecasts=(),
        until=None, channels=1,
        releases=0, completed=0, failures=0, buried=0, wait_total_ms=0, caps_broken=0, rates_held=0,
    )  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(render_page(quiet), encoding="utf-8")
    browser.open(path.as_uri())
    assert browser.evaluate("document.getElementById('forecast')") is None
    assert "No message waited." in browser.evaluate("document.body.innerText")
    assert not browser.evaluate("/NaN|undefined|None/.test(document.querySelector('main').innerHTML)")
    assert browser.problems == []


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        *((0, "0 ms"), (999, "999 ms"), (1_500, "1.5 s"), (59_000, "59 s"), (59_999, "1.0 min")),
        *((90_000, "1.5 min"), (7.2e6, "2.0 h"), (86_400_000 * 30, "30 days")),
    ],
)
def test_a_duration_has_a_suitable_unit(ms: float, words: str) -> None:
    assert draw.format_duration(ms) == words


def test_axis_ticks_are_round_numbers_up_to_the_highest_value() -> None:
    assert draw.ticks(7) == [0, 2, 4, 6, 8]
    assert draw.ticks(3) == [0, 1, 2, 3]
    assert draw.ticks(1_000) == [0, 250, 500, 750, 1_000]
    assert draw.ticks(0) == [0, 1]
    assert [words for _, words in draw.time_ticks(BEGIN, BEGIN + timedelta(hours=24))][:3] == [
        "1 Jan",
        "03:00",
        "06:00",
    ]
    assert len(draw.time_ticks(BEGIN, BEGIN + timedelta(days=400))) <= 9


def test_a_long_time_is_shown_in_periods_of_whole_windows() -> None:
    assert period_length(0, 60) == 60
    assert period_length(119 * 60_000, 60) == 60
    assert period_length(7 * 86_400_000, 60) == 60 * 85
