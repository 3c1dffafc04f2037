"""Rule 2: a client that stops reading, or stops in its transaction, does not block its tenants."""

from collections.abc import Callable

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.conftest import Connect
from tests.races.sessions import Session, create, create_in, dequeue, value, wait_for
from tests.races.stopped_client import stopped_client

pytestmark = pytest.mark.race

TENANTS = [f"tenant {n}" for n in range(50)]
WIDE = "\N{GRINNING FACE}" * 250
DEQUEUE = "select * from message_dequeue(10000, 60000)"


@pytest.fixture
def tcp_dsn(own_server: Callable[..., EmbeddedServer]) -> str:
    server = own_server(port=0, fsync=False)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    return server.dsn


def test_a_stopped_client_with_large_payloads_over_a_unix_socket(connect: Connect, dsn: str) -> None:
    create_large_payloads(connect())
    assert_tenants_are_served(connect(), dsn)


def test_a_stopped_client_with_large_payloads_over_tcp(connect: Connect, tcp_dsn: str) -> None:
    create_large_payloads(connect(tcp_dsn))
    assert_tenants_are_served(connect(tcp_dsn), tcp_dsn)


def test_a_stopped_client_with_long_keys(connect: Connect, dsn: str) -> None:
    keys = [f"{n:04}{WIDE}" for n in range(500)]
    create_keyed(connect(), TENANTS * 10, keys)
    assert_tenants_are_served(connect(), dsn)


def test_a_stopped_client_with_long_channel_names(connect: Connect, dsn: str) -> None:
    create_in(connect(), [f"{name}{WIDE[:240]}" for name in TENANTS] * 10)
    assert_tenants_are_served(connect(), dsn)


def test_a_stopped_client_with_one_channel_with_a_long_name(connect: Connect, dsn: str) -> None:
    create(connect(), WIDE, 500)
    assert_tenants_are_served(connect(), dsn)


@pytest.mark.parametrize("size", [66, 79])
def test_a_stopped_client_with_many_small_messages(connect: Connect, dsn: str, size: int) -> None:
    """500 messages of 66 bytes just fit into a reply, which is the largest possible one."""
    connect().execute(
        "select count(*) from message_create_many(%s::text[], %s::bytea[])",
        [TENANTS * 20, [b"x" * size] * 1000],
    )
    assert_tenants_are_served(connect(), dsn)


def test_a_client_stopped_in_its_transaction_is_disconnected(connect: Connect, dsn: str) -> None:
    session = connect()
    create(session, "a")
    with stopped_client(dsn, "begin", "select * from message_dequeue(1, 4000)") as client:
        # The state is the same between its two statements, so also wait for the second one.
        has_asked = "select query like '%%message_dequeue%%' from pg_stat_activity where pid = %s"
        wait_for(lambda: value(session, has_asked, client.backend_pid))
        wait_for(lambda: state_of(session, client.backend_pid) == ("idle in transaction", "ClientRead"))
        assert dequeue(session) == []
        wait_for(lambda: state_of(session, client.backend_pid) is None, within_s=30)
    assert [one.attempt for one in dequeue(session)] == [1]


def create_large_payloads(session: Session) -> None:
    session.execute(
        "select count(*) from message_create_many(%s::text[], %s::bytea[])",
        [TENANTS, [bytes(400_000)] * 50],
    )


def create_keyed(session: Session, channels: list[str], keys: list[str]) -> None:
    session.execute(
        "select count(*) from message_create_many(%s::text[], %s::bytea[], p_keys => %s::text[])",
        [channels, [b"x" * 60] * len(keys), keys],
    )


def assert_tenants_are_served(session: Session, dsn: str) -> None:
    """The backend of a stopped client finishes the call, and others get new messages of these channels."""
    names = [row[0] for row in session.execute("select distinct channel_name from wake").fetchall()]
    with stopped_client(dsn, DEQUEUE) as client:
        wait_for(lambda: value(session, "select count(*) from lease") > 0, within_s=30)
        wait_for(lambda: state_of(session, client.backend_pid) == ("idle", "ClientRead"), within_s=30)
        create_in(session, names)
        served: set[str] = set()
        for _ in range(100):
            served |= {one.channel for one in dequeue(session, 500)}
        assert served == set(names)


def state_of(session: Session, backend_pid: int) -> tuple[str, str] | None:
    return session.execute(
        "select state, wait_event from pg_stat_activity where pid = %s", [backend_pid]
    ).fetchone()
