"""A client whose role is confined to some channels."""

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import ChannelFull, CreateOutcome, InvalidArgument, NewMessage, NotPermitted, TenantCreated
from tests.client.conftest import OpenConnection, OpenQueue
from tests.conftest import Connect


@pytest.fixture
def role(connect: Connect) -> Iterator[str]:
    name = f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner = connect()
    owner.execute(sql.SQL("create role {} login password 'secret'").format(sql.Identifier(name)))
    yield name
    owner.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
    owner.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def tenant(queue: Any, open_queue: OpenQueue, role: str, dsn: str) -> Any:
    """What a client may do that logs in as a tenant with a channel and a prefix."""
    queue.grant(role, "tenant", channels=["acme"], prefix="acme/", max_channels=2)
    return open_queue(conninfo.make_conninfo(dsn, user=role, password="secret")).tenant


def test_a_tenant_enqueues_looks_cancels_and_redrives(queue: Any, tenant: Any) -> None:
    queue.set(history="metadata")
    first = tenant.enqueue("acme", {"n": 1}, key="k")
    assert tenant.enqueue("acme", {"n": 2}, key="k") == TenantCreated(
        outcome=CreateOutcome.DUPLICATE, uuid=first.uuid
    )
    second, third = tenant.enqueue_many(
        [
            NewMessage(channel="acme/a", payload="x" * 5000),
            NewMessage(channel="acme", payload=3, delay=60, max_attempts=2),
        ]
    )
    assert [one.uuid for one in tenant.peek("acme")] == [first.uuid, third.uuid]
    shown = tenant.show(third.uuid)
    assert (shown.status, shown.max_attempts, shown.content, shown.key) == ("scheduled", 2, b"3", None)
    assert len(tenant.peek("acme/a", preview_bytes=3)[0].content) == 3
    assert [(one.channel, one.waiting) for one in tenant.channels()] == [("acme", 2), ("acme/a", 1)]
    assert tenant.cancel([third.uuid, uuid.uuid4()]) == ["cancelled", "unknown"]
    assert tenant.cancel_key("acme", "k") == "cancelled"
    assert tenant.show(first.uuid) is None

    (message,) = queue.dequeue()
    assert tenant.show(second.uuid).leased_at == message.leased_at
    message.bury(error="broken")
    (letter,) = tenant.dead()
    assert (letter.uuid, letter.channel, letter.error) == (second.uuid, "acme/a", "broken")
    assert tenant.dead("acme", after=letter.uuid) == []
    assert tenant.redrive([letter.uuid]) == ["redriven"]
    queue.dequeue()[0].bury()
    assert tenant.redrive_all("acme/a") == 1
    attempts = tenant.history("acme/a", before=datetime(2100, 1, 1, tzinfo=UTC))
    assert [(one.uuid, one.outcome) for one in attempts] == [(second.uuid, "buried")] * 2


def test_a_tenant_is_told_what_it_may_not_do(queue: Any, tenant: Any) -> None:
    both = [NewMessage(channel=name, payload=1) for name in ("acme/a", "b")]
    refused: list[Callable[[], object]] = [
        lambda: tenant.enqueue("other", 1),
        lambda: tenant.enqueue_many(both),
        lambda: tenant.peek("other"),
        lambda: tenant.history("acme2"),
    ]
    for call in refused:
        with pytest.raises(NotPermitted, match="is not a tenant with channel"):
            call()
    tenant.enqueue_many([NewMessage(channel=f"acme/{name}", payload=1) for name in "ab"])
    with pytest.raises(NotPermitted, match="at most 2 channels that begin with 'acme/', got another one"):
        tenant.enqueue("acme/c", 1)
    queue.channel("acme").set(max_size=1)
    tenant.enqueue("acme", 1)
    assert tenant.enqueue("acme", 1) == TenantCreated(outcome=CreateOutcome.DROPPED, uuid=None)
    with pytest.raises(ChannelFull):
        tenant.enqueue("acme", 1, raise_if_dropped=True)
    for wrong in ("a", 7, None, str(uuid.uuid4())):
        with pytest.raises(InvalidArgument, match=r"uuids? must be a uuid\.UUID"):
            tenant.show(wrong)
        with pytest.raises(InvalidArgument, match="uuids must be"):
            tenant.cancel([wrong])


def test_the_methods_of_the_queue_are_refused(
    queue: Any, open_queue: OpenQueue, role: str, dsn: str, tenant: Any
) -> None:
    theirs = open_queue(conninfo.make_conninfo(dsn, user=role, password="secret"))
    refused: list[Callable[[], object]] = [
        lambda: theirs.enqueue("acme", 1),
        lambda: theirs.dequeue(),
        lambda: theirs.cancel([1]),
        lambda: theirs.status(),
        lambda: theirs.channels(),
        lambda: theirs.copy_in([NewMessage(channel="acme", payload=1)]),
        lambda: theirs.channel("acme").set(max_size=None),
        lambda: theirs.grant(role, "tenant", prefix="b/"),
    ]
    for call in refused:
        with pytest.raises(NotPermitted):
            call()


def test_set_role_on_a_borrowed_connection_chooses_the_tenant(
    queue: Any, role: str, tenant: Any, open_connection: OpenConnection
) -> None:
    connection = open_connection()
    connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
    made = queue.tenant.enqueue("acme", 1, connection=connection)
    assert queue.tenant.show(made.uuid, connection=connection).content == b"1"
    connection.rollback()
    with pytest.raises(NotPermitted):
        queue.tenant.enqueue("acme", 1, connection=connection)


def test_middleware_of_the_queue_runs_around_a_tenants_enqueue(
    queue: Any, open_queue: OpenQueue, role: str, dsn: str
) -> None:
    results: list[Any] = []

    def add_region(messages: Iterable[NewMessage]) -> Generator[Iterable[NewMessage], Any]:
        results.append((yield [replace(one, headers={"region": "eu"}) for one in messages]))

    queue.grant(role, "tenant", channels=["acme"])
    theirs = open_queue(conninfo.make_conninfo(dsn, user=role, password="secret"), middleware=[add_region])
    created = [theirs.tenant.enqueue("acme", 1)]
    created += theirs.tenant.enqueue_many([NewMessage(channel="acme", payload=2)])
    assert [message.headers for _ in range(2) for message in queue.dequeue()] == [{"region": "eu"}] * 2
    assert results == [created[:1], created[1:]]


def test_a_grant_without_clear_bounds_is_refused(queue: Any, role: str) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"channels": []},
        {"channels": [""]},
        {"prefix": "acme"},
        {"prefix": ""},
        {"channels": ["a"], "max_channels": 2},
        {"prefix": "a/", "max_channels": 0},
    ]
    for options in wrong:
        with pytest.raises(InvalidArgument):
            queue.grant(role, "tenant", **options)
    with pytest.raises(InvalidArgument, match="kind must be"):
        queue.grant(role, "producer", prefix="a/")
