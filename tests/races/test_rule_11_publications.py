"""Rule 11: a publication for all tables, as logical replication tools create it, breaks no call."""

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.conftest import Connect
from tests.races.sessions import (
    LEAVE,
    REPORT,
    Session,
    check,
    complete,
    create,
    dequeue,
    drain,
    drop_partitions,
    end,
    value,
)

pytestmark = pytest.mark.race


@pytest.fixture
def logical_dsn(own_server: Callable[..., EmbeddedServer]) -> str:
    server = own_server(fsync=False, settings={"wal_level": "logical"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
        connection.execute("create publication everything for all tables")
    return server.dsn


def test_every_call_works_with_a_publication_for_all_tables(connect: Connect, logical_dsn: str) -> None:
    session = connect(logical_dsn)
    for mode in ("metadata", "full", "off"):
        session.execute("select queue_set(jsonb_build_object('history', %s::text))", [mode])
        drop_partitions(session)
        make_every_call(session)
    assert check(session) == []
    drain(session)


def make_every_call(session: Session) -> None:
    session.execute("""select channel_set('a', '{"max_concurrency": 9, "max_attempts": 9}')""")
    create(session, "a", 6)
    session.execute("select message_create('a', 'x', p_key => 'k')")
    leased = dequeue(session, 5)
    for verb, one in zip(["complete", "defer", "bury", "give_back", "heartbeat"], leased, strict=True):
        end(session, verb, [one])
    session.execute("update lease set unlock_at = 0")
    complete(session, dequeue(session, 2))
    session.execute("select message_cancel_key('a', 'k')")
    session.execute("select dead_redrive_channel('a')")
    (one,) = dequeue(session)
    end(session, "bury", [one])
    session.execute("select dead_purge_channel('a')")
    session.execute("select sleeper_register('w', 1000)")
    session.execute("select sleeper_register('w', 1000)")
    session.execute("select sleeper_clear('w')")
    for _ in range(2):
        session.execute(REPORT)
    session.execute("select worker_drain(null)")
    session.execute(LEAVE)
    part = uuid4()
    session.execute(
        "insert into stage (publication, part, ordinal, channel, contents) values (%s, %s, 1, 'b', '{x}')",
        [str(part), part],
    )
    session.execute("select message_publish(%s, array[%s], array[1])", [str(part), part])
    drain(session)
    session.execute("select history_prepare(2)")
    session.execute("select stage_prune(interval '1 hour')")
    assert value(session, "select channel_delete('b')") == "deleted"
    session.execute("select count(*) from queue_check(true)")
