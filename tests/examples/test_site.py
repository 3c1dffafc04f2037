"""The documentation as a site, in a browser."""

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"


@pytest.fixture(scope="module")
def site() -> Path:
    """The site that `make check` has built, or a new one if a page has changed since."""
    built = SITE / "searchindex.js"
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.*")]
    # The tests of this file run in several processes, of which one builds.
    with (ROOT / "docs" / "conf.py").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists() or built.stat().st_mtime < max(page.stat().st_mtime for page in pages):
            subprocess.run(["make", "docs"], cwd=ROOT, check=True, timeout=600)
    return SITE


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as browser:
        yield browser.new_page()


def test_every_page_is_in_the_site_and_the_front_page_leads_to_it(site: Path) -> None:
    front = (site / "docs" / "index.html").read_text(encoding="utf-8")
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(page for page in ROOT.glob("*.md") if page.name != "README.md"),
    ]
    for source in pages:
        name = source.relative_to(ROOT).with_suffix(".html")
        assert (site / name).exists()
        if source.name != "index.md":
            assert (
                f'href="{"../" if name.parts[0] != "docs" else ""}{str(name).removeprefix("docs/")}"' in front
            )


def test_the_site_needs_nothing_from_elsewhere(site: Path, page: Page) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto((site / "index.html").as_uri())
        page.wait_for_url("**/docs/docs/index.html", wait_until="load")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert requested
    assert all(url.startswith("file:") for url in requested)


def test_the_site_is_searched_without_a_server(site: Path, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto((site / "search.html").as_uri() + "?q=max_concurrency")
    # The results appear one after another.
    page.wait_for_selector("ul.search li a[href*='howto/limit-a-tenant']")


def test_the_reference_has_the_public_names(site: Path) -> None:
    reference = (site / "docs" / "reference" / "api.html").read_text(encoding="utf-8")
    for name in ("Queue", "AsyncQueue", "Worker", "App", "Message"):
        assert f">{name}</span>" in reference
