"""Unreachable servers: how soon clients reconnect, what is logged, and what is not retried."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import ClientSettings, ConnectionLost, LoginRefused, Queue, is_permanent
from lonnymq.embedded import EmbeddedServer
from tests.client.conftest import OpenQueue
from tests.conftest import Connect
from tests.proxy import Proxy

OUTAGE_S = 8.0
# Less than the promised five seconds, because the machine may be slow.
MAX_PAUSE_S = 2.0


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    with Proxy(dsn) as proxy:
        yield proxy


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what a program with default logging shows."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("is_first", [True, False], ids=["first call", "later call"])
def test_a_call_survives_an_outage_and_logs_its_start_and_end(
    proxy: Proxy, open_queue: OpenQueue, caplog: pytest.LogCaptureFixture, is_first: bool
) -> None:
    queue = open_queue(proxy.dsn)
    if not is_first:
        queue.enqueue("a", 1)
    proxy.refuse_connections()
    back_at: list[float] = []

    def come_back() -> None:
        back_at.append(time.monotonic())
        proxy.accept_connections()

    timer = threading.Timer(OUTAGE_S, come_back)
    timer.start()
    assert queue.enqueue("a", 2, key="k").outcome == "created"
    took_s = time.monotonic() - back_at[0]
    timer.join()
    assert took_s < 5.0
    pauses = [after - before for before, after in pairwise(proxy.refused_at)]
    assert max(pauses) < MAX_PAUSE_S
    begin, end = lines_of(caplog)
    assert begin.startswith("no connection to host=127.0.0.1")
    assert "trying again" in begin
    assert "again after" in end


def test_a_long_outage_fails_each_call_but_is_logged_once(
    proxy: Proxy, open_queue: OpenQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue(proxy.dsn, settings=ClientSettings(retry_for_s=0.5))
    proxy.refuse_connections()
    for _ in range(3):
        with pytest.raises(ConnectionLost, match="nothing was sent") as caught:
            queue.enqueue("a", 1)
        assert not caught.value.may_have_happened
        assert not is_permanent(caught.value)
    assert len(lines_of(caplog)) == 1
    proxy.accept_connections()
    queue.enqueue("a", 1)
    assert len(lines_of(caplog)) == 2


def test_many_threads_reconnect_after_an_outage(proxy: Proxy) -> None:
    with (
        Queue(proxy.dsn, settings=ClientSettings(pool_max_size=3)) as queue,
        ThreadPoolExecutor(20) as threads,
    ):
        queue.status()
        proxy.refuse_connections()
        waiting = [threads.submit(queue.enqueue, "a", n, key=str(n)) for n in range(20)]
        time.sleep(1)
        proxy.accept_connections()
        assert [future.result(10).outcome for future in waiting] == ["created"] * 20


def test_a_role_at_its_connection_limit_waits(dsn: str, connect: Connect, open_queue: OpenQueue) -> None:
    admin, name = connect(), f"crowded_{uuid.uuid4().hex[:8]}"
    role = sql.Identifier(name)
    admin.execute(sql.SQL("create role {} login connection limit 0").format(role))
    admin.execute("select queue_grant(%s, 'producer')", (name,))
    room = sql.SQL("alter role {} connection limit 5").format(role)
    timer = threading.Timer(1.0, lambda: admin.execute(room))
    timer.start()
    queue = open_queue(conninfo.make_conninfo(dsn, user=name))
    try:
        assert queue.enqueue("a", 1).outcome == "created"
    finally:
        timer.join()
        queue.close()
        admin.execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(role))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"user": "nobody_here"}, 'role "nobody_here" does not exist'),
        ({"options": "-c no_such_setting=1"}, "no_such_setting"),
        ({"options": "-c statement_timeout=soon"}, "statement_timeout"),
        ({"sslmode": "perhaps"}, "sslmode"),
        ({"port": "seven"}, "seven"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_login_that_cannot_succeed_is_refused_at_once(
    dsn: str, open_queue: OpenQueue, changes: dict[str, Any], reason: str
) -> None:
    queue = open_queue(conninfo.make_conninfo(dsn, **changes))
    began = time.monotonic()
    with pytest.raises(LoginRefused, match=reason) as caught:
        queue.enqueue("a", 1)
    assert time.monotonic() - began < 5
    assert is_permanent(caught.value)
    assert "Check the connection string, in LONNYMQ_DSN" in str(caught.value)


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_refused_login_begins_with_the_servers_own_reason(
    dsn: str, open_queue: OpenQueue, hosts: int
) -> None:
    parts = conninfo.conninfo_to_dict(dsn)
    several = {name: ",".join([str(parts[name])] * hosts) for name in ("host", "port") if name in parts}
    queue = open_queue(conninfo.make_conninfo(dsn, dbname="nowhere", **several))
    with pytest.raises(LoginRefused, match=r'^database "nowhere" does not exist \(server ') as caught:
        queue.status()
    # Two identical hosts are named once.
    assert str(caught.value).count("does not exist") == 1


def test_a_wrong_or_missing_password_is_refused_at_once(own_server: Callable[..., EmbeddedServer]) -> None:
    server = own_server(fsync=False, port=0)
    for password in ("wrong", ""):
        parts = {**conninfo.conninfo_to_dict(server.dsn), "password": password}
        began = time.monotonic()
        with Queue(conninfo.make_conninfo("", **{k: v for k, v in parts.items() if v})) as queue:
            with pytest.raises(LoginRefused):
                queue.status()
        assert time.monotonic() - began < 5


def test_an_unreachable_host_among_several_is_retried(dsn: str, open_queue: OpenQueue) -> None:
    parts = conninfo.conninfo_to_dict(dsn)
    several = conninfo.make_conninfo(
        dsn, host=f"127.0.0.1,{parts['host']}", port=f"1,{parts.get('port') or 5432}", dbname="nowhere"
    )
    queue = open_queue(several, settings=ClientSettings(retry_for_s=0.2))
    with pytest.raises(ConnectionLost) as caught:
        queue.status()
    assert not isinstance(caught.value, LoginRefused)


def test_outages_do_not_leak_places_in_the_pool(proxy: Proxy) -> None:
    settings = ClientSettings(pool_max_size=1, retry_for_s=0.3)
    with Queue(proxy.dsn, settings=settings) as queue:
        for _ in range(3):
            queue.status()
            proxy.refuse_connections()
            with pytest.raises(ConnectionLost):
                queue.status()
            proxy.accept_connections()
        queue.status()
