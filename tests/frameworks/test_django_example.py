"""The example for Django, with a real server and a real worker."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.forked import ForkedProgram
from tests.frameworks.programs import ROOT, address_of, program
from tests.worker.workers import TIMEOUT_S, eventually

WEB = ("uvicorn", "examples.django_shop.asgi:application", "--port", "0")
MANAGE = "examples.django_shop.manage"


@pytest.fixture
def migrated(database: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    dsn = database(is_empty=True)
    monkeypatch.setenv("LONNYMQ_DSN", dsn)
    for command in (["migrate", "--verbosity", "0"], ["makemigrations", "--check"]):
        assert ForkedProgram(MANAGE, *command, cwd=ROOT).wait(TIMEOUT_S) == 0
    return dsn


def test_the_example_takes_orders_and_sends_receipts(migrated: str, tmp_path: Path) -> None:
    with ExitStack() as running:
        running.enter_context(program(*WEB, dsn=migrated, log=tmp_path / "web"))
        address = address_of(tmp_path / "web")
        client = running.enter_context(httpx2.Client(base_url=address, timeout=TIMEOUT_S))
        connection = running.enter_context(psycopg.connect(migrated, autocommit=True))

        def post(tenant: str) -> httpx2.Response:
            return client.post("/orders", data={"tenant": tenant, "item": "lamp"})

        tenants = ("acme", "tiny", "acme")
        orders = [post(tenant).raise_for_status().json()["id"] for tenant in tenants]
        assert client.get(f"/orders/{orders[0]}").json() == {"item": "lamp", "receipt": None}
        assert client.get("/tenants/acme/explanation").json() == {"reason": "ready"}
        assert post("").status_code == 422
        assert client.get("/orders/0").status_code == 404
        assert client.get("/admin/login/").status_code == 200
        # Fails at the commit, after the message was created.
        connection.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise 'no lamps'; end $$"
        )
        connection.execute(
            "create constraint trigger refuse after insert on django_shop_order deferrable initially deferred"
            " for each row execute function refuse()"
        )
        assert post("broke").status_code == 500
        created = connection.execute("select channel from lonnymq.message_peek()").fetchall()
        assert sorted(channel for (channel,) in created) == sorted(tenants)

        worker = (MANAGE, "lonnymq_work", "examples.django_shop.jobs")
        running.enter_context(program(*worker, dsn=migrated, log=tmp_path / "worker"))
        for order, tenant in zip(orders, tenants, strict=True):
            receipt = f"receipt of {tenant}, attempt 1"
            eventually(lambda o=order, r=receipt: client.get(f"/orders/{o}").json()["receipt"] == r)  # type: ignore[misc]
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (0,)
        assert not connection.execute("select * from lonnymq.queue_check()").fetchall()
