"""The pages in a real browser: wide and narrow, dark, by keyboard, without scripts."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from lonnymq import NewMessage, Queue
from lonnymq.dashboard import DashboardSettings, asgi_app
from tests.browser import Browser
from tests.dashboard.conftest import HOSTILE, Serve, operator

PAGES = ("/", "/channels", "/channels?order=messages", "/channels?order=name", "/channels/capped", "/nothing")
# A page that is not there is reported by the browser too.
EXPECTED = "error: Failed to load resource: the server responded with a status of 404 (Not Found)"


@pytest.fixture
def site(dsn: str, queue: Queue, serve: Serve) -> str:
    """The address of a dashboard below a prefix; its queue has tenants of all kinds, with hostile names."""
    for name in (*HOSTILE, "capped", "slow", "later", "stopped"):
        queue.enqueue(name, 1, delay=3600 if name == "later" else None)
    queue.channel("capped").set(max_concurrency=1)
    queue.channel("slow").set(release_interval_ms=60_000, weight=3)
    queue.enqueue_many([_message("capped") for _ in range(3)])
    for message in queue.dequeue(limit=100):
        if message.channel != "capped":
            message.complete()
    queue.enqueue_many([_message(name) for name in HOSTILE])
    queue.channel("stopped").pause()
    queue.enqueue("stopped", 1)
    settings = DashboardSettings(environment="<staging>", colour="orange", sample_s=0.5)
    dashboard = asgi_app(dsn, access=operator, settings=settings)
    return serve(Starlette(routes=[Mount("/ops/queue", dashboard)])) + "/ops/queue"


def _message(channel: str) -> NewMessage:
    return NewMessage(channel=channel, payload=1)


@pytest.fixture
def browser(program: Any) -> Iterator[Browser]:
    browser = Browser(program)
    yield browser
    browser.page.close()


def assert_clean(browser: Browser, site: str) -> None:
    """No errors, no refused styles or scripts, and nothing from another host."""
    assert [one for one in browser.problems if one != EXPECTED] == []
    assert [url for url in browser.requests if not url.startswith(f"{site}/")] == []


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (390, True)])
def test_pages_fit_and_cause_no_errors(browser: Browser, site: str, width: int, is_dark: bool) -> None:
    for path in PAGES:
        browser.open(site + path, width=width, is_dark=is_dark)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, path
        assert browser.evaluate("document.querySelectorAll('h1').length") == 1
        assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert browser.evaluate(
            "(ids => ids.length === new Set(ids).size)([...document.querySelectorAll('[id]')].map(e => e.id))"
        )
        luminance = browser.evaluate(
            "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
        )
        assert (luminance < 60) is is_dark
        assert_clean(browser, site)


def test_the_page_follows_the_queue_until_updates_are_paused(
    browser: Browser, site: str, queue: Queue
) -> None:
    page = browser.page
    browser.open(f"{site}/channels/capped")
    expect(page.locator(".verdict")).to_contain_text("The only message allowed at a time is leased")
    queue.channel("capped").set(max_concurrency=None)
    expect(page.locator(".verdict")).to_contain_text("The next message waits for a worker", timeout=20_000)
    page.get_by_role("button", name="Pause updates").click()
    browser.requests.clear()
    queue.channel("capped").pause()
    page.wait_for_timeout(2_500)
    assert browser.requests == []
    page.get_by_role("button", name="Resume updates").click()
    expect(page.locator(".verdict")).to_contain_text("The channel is paused", timeout=20_000)
    assert_clean(browser, site)


def test_a_page_says_when_it_is_not_up_to_date(browser: Browser, site: str) -> None:
    page = browser.page
    browser.open(f"{site}/")
    stale = page.get_by_text("This page is not up to date")
    expect(stale).to_be_hidden()
    page.context.set_offline(True)
    expect(stale).to_be_visible(timeout=20_000)
    page.context.set_offline(False)
    expect(stale).to_be_hidden(timeout=20_000)
    assert {one.partition(" ")[0] for one in browser.problems} == {"error:"}


def test_everything_can_be_reached_with_the_keyboard(browser: Browser, site: str, queue: Queue) -> None:
    page = browser.page
    browser.open(f"{site}/channels/capped")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if browser.evaluate("document.activeElement.value") == "pause":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The channel is paused")
    status = queue.channel("capped").status()
    assert status is not None
    assert status.policy.is_paused
    assert_clean(browser, site)


def test_everything_works_without_scripts(program: Any, site: str, queue: Queue) -> None:
    browser = Browser(program, java_script_enabled=False)
    page = browser.page
    browser.open(f"{site}/")
    page.get_by_label("Find channels whose names begin with").fill("stop")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="stopped").click()
    expect(page.locator(".verdict")).to_contain_text("The channel is paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status").first).to_contain_text("releases messages again")
    expect(page.locator(".verdict")).to_contain_text("The next message waits for a worker")
    assert [one.channel for one in queue.dequeue(limit=100) if one.channel == "stopped"] == ["stopped"]
    assert_clean(browser, site)
    page.close()
