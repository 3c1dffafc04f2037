"""The dashboard inside other applications, and while its database is away."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import lonnymq
from lonnymq import AsyncQueue, Queue
from lonnymq.dashboard import Dashboard, asgi_app
from lonnymq.embedded import EmbeddedServer
from tests.dashboard.conftest import operator, token_of
from tests.worker.workers import eventually


def in_fastapi(dashboard: Dashboard) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        async with dashboard:
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/queue", dashboard)
    return app


def in_django(dashboard: Dashboard) -> Any:
    """As in an asgi.py, where Django gets everything else."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/queue/"):
            await dashboard({**scope, "root_path": "/queue"}, receive, send)
        elif scope["type"] == "lifespan":
            await dashboard(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 418, "headers": []})
            await send({"type": "http.response.body", "body": b"Django"})

    return application


@pytest.mark.parametrize("mount", [in_fastapi, in_django])
def test_an_application_shows_it_below_a_path(
    dsn: str, queue: Queue, mount: Callable[[Dashboard], Any]
) -> None:
    queue.enqueue("acme", 1)
    application = mount(asgi_app(AsyncQueue(dsn), access=operator))
    with TestClient(application, base_url="http://localhost") as browser:
        assert browser.get("/elsewhere").status_code in (404, 418)
        page = browser.get("/queue/").text
        assert 'href="/queue/channels"' in page
        page = browser.get("/queue/channels/acme").text
        form = {"token": token_of(page), "action": "pause"}
        answer = browser.post("/queue/channels/acme", data=form, follow_redirects=False)
        assert answer.headers["location"] == "/queue/channels/acme"
        assert "The channel is paused" in browser.get("/queue/channels/acme").text


def test_a_queue_of_the_application_stays_open(dsn: str) -> None:
    async def scenario() -> int | None:
        async with AsyncQueue(dsn) as queue:
            async with asgi_app(queue, access="reader") as dashboard:
                await dashboard.sampler.look()
            return (await queue.enqueue("acme", 1)).id

    assert asyncio.run(scenario())


def test_without_a_database_it_says_so_and_shows_nothing_old(
    own_server: Callable[..., EmbeddedServer],
) -> None:
    server = own_server(fsync=False, port=0)
    with lonnymq.Queue(server.dsn) as queue:
        queue.install()
        queue.enqueue("acme", 1)
    with TestClient(asgi_app(server.dsn, access=operator), base_url="http://localhost") as browser:
        assert browser.get("/").status_code == 200
        server.stop()
        # What was read within the last two seconds is shown.
        eventually(lambda: browser.get("/").status_code == 503)
        for path in ("/", "/channels", "/channels/acme"):
            page = browser.get(path)
            assert page.status_code == 503
            assert "No connection to the database" in page.text
            assert "acme" not in page.text.replace("/channels/acme", "")


def test_a_database_without_a_queue_is_explained(database: Callable[..., str]) -> None:
    empty = asgi_app(database(is_empty=True), access=operator)
    with TestClient(empty, base_url="http://localhost") as browser:
        page = browser.get("/")
        assert page.status_code == 503
        assert "lonnymq install" in page.text
