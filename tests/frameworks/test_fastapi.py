"""The queue in applications of FastAPI and Starlette; the example has a real server and a real worker."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI, WebSocket
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import lonnymq
from lonnymq.fastapi import QueueDependency, lifespan, queue_of
from tests.dashboard.conftest import token_of
from tests.frameworks.programs import address_of, program
from tests.worker.workers import TIMEOUT_S, eventually

WEB = ("uvicorn", "examples.fastapi_shop.web:web", "--port", "0")


def test_the_example_takes_orders_and_sends_receipts(dsn: str, tmp_path: Path) -> None:
    web_log, worker_log = tmp_path / "web", tmp_path / "worker"
    with ExitStack() as running:
        web = program(*WEB, dsn=dsn, log=web_log)
        running.enter_context(web)
        client = running.enter_context(httpx2.Client(base_url=address_of(web_log), timeout=TIMEOUT_S))
        orders = [
            client.post("/orders", json={"tenant": tenant, "item": "lamp"}).raise_for_status().json()["id"]
            for tenant in ("acme", "tiny", "acme")
        ]
        assert client.get(f"/orders/{orders[0]}").json() == {"item": "lamp", "receipt": None}
        assert client.get("/tenants/acme/explanation").json() == {"reason": "ready"}
        assert client.post("/orders", json={"tenant": "", "item": "lamp"}).status_code == 422
        assert client.get("/orders/0").status_code == 404

        work = program("lonnymq", "work", "examples.fastapi_shop.jobs", dsn=dsn, log=worker_log)
        running.enter_context(work)
        for order, tenant in zip(orders, ("acme", "tiny", "acme"), strict=True):
            receipt = f"receipt of {tenant}, attempt 1"
            eventually(lambda o=order, r=receipt: client.get(f"/orders/{o}").json()["receipt"] == r)  # type: ignore[misc]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (0,)


def test_the_dashboard_of_the_example_is_for_those_with_a_password(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_OPERATOR_PASSWORD", "lamps and shades")
    with (
        program(*WEB, dsn=dsn, log=tmp_path / "web"),
        httpx2.Client(base_url=address_of(tmp_path / "web"), timeout=TIMEOUT_S) as client,
    ):
        client.post("/orders", json={"tenant": "acme", "item": "lamp"}).raise_for_status()
        assert client.get("/queue/").status_code == 401
        assert client.get("/queue/", auth=("operator", "lamps")).status_code == 401
        client.auth = ("operator", "lamps and shades")
        assert 'href="/queue/channels"' in client.get("/queue/").raise_for_status().text
        page = client.get("/queue/channels/acme").raise_for_status().text
        form = {"token": token_of(page), "action": "pause"}
        assert client.post("/queue/channels/acme", data=form).status_code == 303
        assert client.get("/tenants/acme/explanation").json() == {"reason": "paused"}


def test_nobody_enters_the_dashboard_of_the_example_without_a_password(dsn: str, tmp_path: Path) -> None:
    with (
        program(*WEB, dsn=dsn, log=tmp_path / "web"),
        httpx2.Client(base_url=address_of(tmp_path / "web"), timeout=TIMEOUT_S) as client,
    ):
        for password in ("", "operator"):
            assert client.get("/queue/", auth=("operator", password)).status_code == 401


def test_an_order_that_fails_leaves_no_message(dsn: str, tmp_path: Path) -> None:
    with (
        program("uvicorn", "examples.fastapi_shop.web:web", "--port", "0", dsn=dsn, log=tmp_path / "web"),
        httpx2.Client(base_url=address_of(tmp_path / "web"), timeout=TIMEOUT_S) as client,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        # Fails at the commit, after the message was created.
        connection.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise 'no lamps'; end $$"
        )
        connection.execute(
            "create constraint trigger refuse after insert on orders deferrable initially deferred"
            " for each row execute function refuse()"
        )
        assert client.post("/orders", json={"tenant": "acme", "item": "lamp"}).status_code == 500
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (0,)


def kinds_of_queues(dsn: str) -> list[Any]:
    return [dsn, lonnymq.AsyncQueue(dsn), lonnymq.App(dsn), lonnymq.App(lonnymq.AsyncQueue(dsn))]


def test_a_request_and_a_websocket_get_the_client(dsn: str) -> None:
    for given in kinds_of_queues(dsn):
        web = FastAPI(lifespan=lifespan(given))

        @web.post("/videos/{video}")
        async def create(video: int, queue: QueueDependency) -> str:
            return (await queue.enqueue("acme", {"video": video})).outcome

        @web.websocket("/videos")
        async def follow(socket: WebSocket, queue: QueueDependency) -> None:
            await socket.accept()
            await socket.send_json([message.payload for message in await queue.dequeue(limit=10)])
            await socket.close()

        with TestClient(web) as client:
            assert client.post("/videos/7").json() == "created"
            with client.websocket_connect("/videos") as socket:
                assert socket.receive_json() == [{"video": 7}]


def test_the_lifespan_closes_its_connections(dsn: str) -> None:
    queue = lonnymq.AsyncQueue(dsn)
    web = FastAPI(lifespan=lifespan(queue))

    @web.get("/")
    async def ask(queue: QueueDependency) -> int:
        return (await queue.status()).waiting

    count = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:

        def others() -> int:
            row = connection.execute(count).fetchone()
            assert row
            return int(row[0])

        with TestClient(web) as client:
            assert client.get("/").json() == 0
            assert others() > 0
        eventually(lambda: others() == 0)


def test_a_lifespan_of_the_application_keeps_its_state(dsn: str) -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def own(web: Starlette) -> AsyncIterator[dict[str, str]]:
        yield {"greeting": "hello"}
        ended.append("own")

    async def greet(request: Request) -> JSONResponse:
        status = await queue_of(request).status()
        return JSONResponse([request.state.greeting, status.waiting])

    web = Starlette(routes=[Route("/", greet)], lifespan=lifespan(dsn, inner=own))
    with TestClient(web) as client:
        assert client.get("/").json() == ["hello", 0]
    assert ended == ["own"]


def test_what_is_missing_or_wrong_is_named() -> None:
    with pytest.raises(lonnymq.InvalidArgument, match=r"queue must be .*AsyncQueue.*Queue"):
        lifespan(lonnymq.Queue("postgresql://"))  # type: ignore[arg-type]
    web = FastAPI()

    @web.get("/")
    async def ask(queue: QueueDependency) -> None: ...

    with TestClient(web) as client, pytest.raises(lonnymq.LonnyError, match="lifespan="):
        client.get("/")
