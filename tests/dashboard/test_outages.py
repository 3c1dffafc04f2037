"""What the dashboard says, and when it recovers, if the database is slow or silent, or a visitor is."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from lonnymq import AsyncQueue, Queue
from lonnymq.dashboard import DashboardSettings, asgi_app
from lonnymq.dashboard.pages.system import without_statements
from lonnymq.diagnostics import VacuumBlocker
from lonnymq.doctor.finding import QueueFacts
from lonnymq.doctor.findings import findings
from tests.dashboard.conftest import OpenClient, operator, token_of
from tests.proxy import Proxy
from tests.worker.workers import eventually

Connect = Callable[..., psycopg.Connection[Any]]


def test_a_statement_that_takes_too_long_is_no_mystery(
    client: OpenClient, queue: Queue, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    queue.enqueue("acme", 1)
    browser = client(statement_timeout_s=0.3, sample_s=0.5)
    token = token_of(browser.get("/channels/acme").text)
    blocker = connect(autocommit=False)
    blocker.execute("lock table lonnymq.channel, lonnymq.audit in access exclusive mode")
    for path in ("/channels/acme", "/messages", "/audit"):
        page = browser.get(path)
        assert (page.status_code, "The database took too long" in page.text) == (503, True)
    answer = browser.post("/channels/acme", data={"token": token, "action": "pause"})
    assert (answer.status_code, "Nothing was changed" in answer.text) == (503, True)
    blocker.rollback()
    eventually(lambda: browser.get("/channels/acme").status_code == 200)
    status = queue.channel("acme").status()
    assert status is not None
    assert not status.policy.is_paused
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_a_connection_that_falls_silent_is_given_up(dsn: str, queue: Queue) -> None:
    """Nothing reports an error, as with a pooler whose server is gone, and the sampler is what waits."""
    settings = DashboardSettings(statement_timeout_s=0.2, sample_s=0.5)
    with Proxy(dsn) as proxy:
        app = asgi_app(proxy.dsn, access=operator, settings=settings)
        with TestClient(app, base_url="http://localhost") as browser:
            assert browser.get("/").status_code == 200
            proxy.stall_open_connections()
            eventually(lambda: browser.get("/").status_code == 503)
            queue.enqueue("acme", 1)
            eventually(lambda: "acme" in browser.get("/").text)


def test_readers_do_not_see_the_statements_of_others(dsn: str, queue: Queue) -> None:
    async def examine() -> Any:
        async with AsyncQueue(dsn) as asynchronous:
            return await asynchronous.examine()

    secret = VacuumBlocker("transaction", "7", "olga", "psql", "active", 4000.0, "insert ... 'secret'")
    facts = replace(asyncio.run(examine()), vacuum_blockers=(secret,))
    unknown = QueueFacts(None, None, None, None)
    shown, hidden = (
        str(list(findings(one, unknown, datetime.now(UTC)))) for one in (facts, without_statements(facts))
    )
    assert "secret" in shown
    assert "secret" not in hidden
    assert "olga" in hidden


def test_an_error_of_the_access_check_is_logged_and_not_shown(
    client: OpenClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(request: Any) -> str:
        queue.enqueue("", 1)
        return "operator"

    answer = client(access=fails).get("/")
    assert answer.status_code == 500
    assert "channel" not in answer.text
    assert "channel must be" in caplog.text


def test_a_form_that_does_not_arrive_is_no_fault_of_the_dashboard(
    dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.dashboard.form.MAX_SEND_S", 0.1)
    app = asgi_app(dsn, access=operator)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/x-www-form-urlencoded")]
    path = {"path": "/channels/acme", "root_path": "", "query_string": b"", "scheme": "http"}
    scope = {"type": "http", "method": "POST", **path, "headers": headers, "client": ("127.0.0.1", 1)}

    async def post(*messages: dict[str, Any]) -> int:
        left, sent = list(messages), []

        async def receive() -> dict[str, Any]:
            return left.pop(0) if left else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return int(sent[0]["status"])

    part = {"type": "http.request", "body": b"a=", "more_body": True}
    assert asyncio.run(post(part)) == 408
    assert asyncio.run(post(part, {"type": "http.disconnect"})) == 408
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
