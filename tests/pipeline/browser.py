"""A page in a real browser, and the errors that occur in it."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage


class Browser:
    """One page; `problems` and `requests` belong to the file that was opened last."""

    def __init__(self, chromium: Chromium) -> None:
        self.page = chromium.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._record)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, file: Path, *, width: int = 1200, height: int = 900, is_dark: bool = False) -> None:
        """Open a file and wait until it has loaded."""
        self.problems.clear()
        self.requests.clear()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if is_dark else "light")
        self.page.goto(file.as_uri())

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def _record(self, message: ConsoleMessage) -> None:
        self.problems.append(f"{message.type}: {message.text}")
