"""The pages of operators in a real browser: wide and narrow, dark, by keyboard, without scripts."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from lonnymq import Queue
from lonnymq.dashboard import DashboardSettings, asgi_app
from tests.browser import Browser
from tests.dashboard.conftest import HOSTILE, Serve, operator
from tests.dashboard.test_messages import bury
from tests.dashboard.test_pages import assert_clean

PAGES = (
    *(
        "/messages",
        "/messages?status=scheduled",
        "/messages?channel=..",
        "/failures",
        "/failures?error=no+disk",
    ),
    *("/crons", "/workers", "/system", "/audit", "/audit?actor=nobody"),
)


@pytest.fixture
def site(dsn: str, queue: Queue, serve: Serve) -> str:
    """The address of a dashboard below a prefix; its queue has hostile values in every field."""
    queue.set(history="metadata")
    queue.history.prepare(days=1)
    for name in HOSTILE:
        queue.enqueue(name, name, headers={name[:50]: name})
        queue.dequeue(worker=name)[0].defer(error=f"trace\n{name}", state=name.encode())
        queue.dequeue(worker=name)[0].bury(error=f"trace\n{name}")
        queue.enqueue(name, name, key=name, delay=3600)
        queue.cron.set(name[:200], "0 3 * * *", channel=name, payload=name)
        with queue.audit.action(name, name[:100], name, {name: name}) as action:
            action.outcomes.append(name[:100])
    bury(queue, "acme", 6, "no disk")
    settings = DashboardSettings(environment="<staging>", colour="orange", sample_s=0.5)
    dashboard = asgi_app(dsn, access=operator, settings=settings)
    return serve(Starlette(routes=[Mount("/ops/queue", dashboard)])) + "/ops/queue"


@pytest.fixture
def browser(program: Any) -> Iterator[Browser]:
    browser = Browser(program)
    yield browser
    browser.page.close()


def press_tab_until(browser: Browser, expression: str) -> None:
    """Go to an element by keyboard; the expression is about document.activeElement."""
    for _ in range(200):
        browser.page.keyboard.press("Tab")
        if browser.evaluate(f"(e => {expression})(document.activeElement)"):
            return
    raise AssertionError(f"no element can be reached for which {expression}")


def test_pages_fit_and_cause_no_errors(browser: Browser, site: str, queue: Queue) -> None:
    ids = [queue.messages().items[0].id, queue.dead("acme").ids().items[0], *queue.dead().ids().items[-3:]]
    for width, is_dark in ((1280, False), (390, True)):
        for path in (*PAGES, *(f"/messages/{id_}" for id_ in ids)):
            browser.open(site + path, width=width, is_dark=is_dark)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, path
            assert browser.evaluate("document.querySelectorAll('h1').length") == 1
            assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
            assert browser.evaluate(
                "(ids => ids.length === new Set(ids).size)("
                "[...document.querySelectorAll('[id]')].map(e => e.id))"
            ), path
            assert_clean(browser, site)


def test_actions_by_keyboard_and_without_scripts(
    program: Any, browser: Browser, site: str, queue: Queue
) -> None:
    page = browser.page
    browser.open(f"{site}/failures?channel=acme")
    shown = set(queue.dead("acme").ids().items)
    late = set(bury(queue, "acme", 3, "no disk"))
    press_tab_until(browser, "e.tagName == 'SUMMARY' && e.textContent.includes('Redrive 6')")
    page.keyboard.press("Enter")
    press_tab_until(browser, "e.name == 'typed'")
    page.keyboard.type("6")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("6 redriven.")
    assert page.url == f"{site}/failures?channel=acme"
    assert {one.id for one in queue.messages("acme").items} == shown
    assert set(queue.dead("acme").ids().items) == late
    # The number of the page that was loaded again is right.
    expect(page.get_by_text("All that this filter matches: 3")).to_be_visible()
    assert_clean(browser, site)

    plain = Browser(program, java_script_enabled=False)
    page = plain.page
    scheduled = next(one for one in queue.messages().items if one.channel == "日本語 👩‍🚀")
    plain.open(f"{site}/messages/{scheduled.id}", width=390, is_dark=True)
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status").first).to_contain_text("due now")
    page.get_by_text("Cancel this message").first.click()
    page.get_by_label("Type").fill(str(scheduled.id))
    page.get_by_role("button", name="Cancel this message").click()
    expect(page.get_by_role("status").first).to_contain_text("The message is cancelled")
    assert queue.show(scheduled.id) is None
    plain.open(f"{site}/crons", width=390)
    # Its name is the first one that is not empty for a label.
    page.get_by_role("button", name="Pause {{ 7 * 7 }}").click()
    expect(page.get_by_role("status").first).to_contain_text("The cron is paused")
    assert [one.name for one in queue.cron.list() if one.is_paused] == ["{{ 7 * 7 }}{% raw %}"]
    plain.open(f"{site}/failures?channel=acme", width=390)
    page.get_by_text("Delete 3").first.click()
    page.locator("details[open]").get_by_label("Type").fill("3")
    page.locator("details[open]").get_by_role("button").click()
    expect(page.get_by_role("status").first).to_contain_text("3 purged.")
    assert queue.dead("acme").ids().items == []
    plain.open(f"{site}/audit", width=390)
    expect(page.get_by_text("dead_purge")).to_be_visible()
    assert [error for error in plain.problems if "404" not in error] == []
    page.close()
