"""The dashboard of a test's queue: in this process for requests, on a port of its own for a browser."""

import html
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from lonnymq.dashboard import Access, DashboardSettings, Visitor, asgi_app
from tests.browser import chromium

# Names that tenants could choose to do harm, or that break addresses.
HOSTILE = (
    '<script>alert("x")</script>',
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "a/../b",
    "..",
    ".",
    "/leading//slashes/",
    "back\\slash",
    "?query=1&token=2#hash",
    "100%25 %2e%2e %",
    " spaces ",
    "javascript:alert(1)",
    "x\u202egnp.exe",
    "\u200binvisible",
    "日本語 👩‍🚀",
    "y" * 255,
)
Client = TestClient
OpenClient = Callable[..., TestClient]
Serve = Callable[..., str]


def operator(request: Any) -> Visitor:
    return Visitor("olga", Access.OPERATOR)


def reader(request: Any) -> Visitor:
    return Visitor("rita", Access.READER)


@pytest.fixture
def client(dsn: str) -> Iterator[OpenClient]:
    """A factory of clients, each with a dashboard of its own, of which the visitor is an operator."""
    with ExitStack() as opened:

        def client(
            *,
            access: Any = operator,
            queue_dsn: str = dsn,
            reader_dsn: str | None = None,
            **settings: Any,
        ) -> TestClient:
            app = asgi_app(
                queue_dsn, access=access, reader=reader_dsn, settings=DashboardSettings(**settings)
            )
            made = TestClient(app, base_url="http://localhost:8090", follow_redirects=False)
            return opened.enter_context(made)

        yield client


@pytest.fixture
def serve(dsn: str) -> Iterator[Serve]:
    """A factory of servers; each returns its address."""
    with ExitStack() as running:

        def serve(app: Any = None, **options: Any) -> str:
            app = app or asgi_app(dsn, access=options.pop("access", operator))
            return running.enter_context(served(app, **options))

        yield serve


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve an application on a free port from a thread, and yield its address."""
    with run_server(uvicorn.Config(app, port=0, log_level="warning", ws="none", **options)) as server:
        yield f"http://localhost:{port_of(server)}"


@contextmanager
def run_server(config: uvicorn.Config) -> Iterator[uvicorn.Server]:
    """Run a server in a thread."""
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        yield server
    finally:
        server.should_exit = True
        thread.join()


def port_of(server: uvicorn.Server) -> int:
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    with chromium() as program:
        yield program


def token_of(page: str) -> str:
    """Return the token of a page's forms."""
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None, "the page has no form"
    return found[1]


def text_of(page: str) -> str:
    """Return the text of a page, as somebody reads it."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
