"""A page in a real browser, and the errors that occur in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage, sync_playwright


@contextmanager
def chromium() -> Iterator[Chromium]:
    """The installed Chromium, headless; Playwright's own would have to be downloaded.

    Not for a whole session: Playwright keeps an event loop running in this thread, in which asyncio.run()
    fails.
    """
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=program) as browser:
        yield browser


class Browser:
    """One page; `problems` and `requests` belong to the address that was opened last."""

    def __init__(self, chromium: Chromium, **options: Any) -> None:
        self.page = chromium.new_page(**options)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._record)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url: str, *, width: int = 1200, height: int = 900, is_dark: bool = False) -> None:
        """Open an address and wait until it has loaded."""
        self.problems.clear()
        self.requests.clear()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if is_dark else "light")
        self.page.goto(url)

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def _record(self, message: ConsoleMessage) -> None:
        self.problems.append(f"{message.type}: {message.text}")
