"""Other calls read no more than they need, whatever statistics the planner has."""

import pytest

from tests.plans.plan import flush_statistics
from tests.sql.conftest import Login, Open, role_of
from tests.sql.session import Session

pytestmark = pytest.mark.plan

MANY = 20_000
FEW = 1_000
# Some calls must skip the dead rows that a snapshot keeps.
DEAD = 3_000


def entries_read(queue: Session) -> int:
    """Return the number of index entries and table rows that were read so far."""
    flush_statistics(queue)
    count: int = queue.ask(
        "select (select sum(idx_tup_read) from pg_stat_user_indexes)::bigint"
        " + (select sum(seq_tup_read) from pg_stat_user_tables)::bigint"
    )
    return count


def cost(queue: Session, call: str) -> int:
    before = entries_read(queue)
    queue.run(f"select * from {call}")
    return entries_read(queue) - before


def mislead(queue: Session, holder: Session) -> None:
    """Make statistics with many pages and hardly any rows: a snapshot keeps dead rows while VACUUM counts."""
    holder.run("begin isolation level repeatable read")
    holder.run("select count(*) from message")
    queue.fill("c", DEAD)
    queue.drain(limit=500)
    queue.run(
        "insert into dead (message_id, channel, dequeue_at, created_at, buried_at, attempts, content)"
        " select n, 'd', 1, 1, 1, 1, 'x' from generate_series(1, %s) n",
        DEAD,
    )
    queue.run("delete from dead")
    queue.run("insert into channel (id, name) select n, 'gone ' || n from generate_series(1, %s) n", DEAD)
    queue.run("delete from channel where name like 'gone %'")
    queue.run("vacuum (analyze) message, lease, wake, turn, channel, dead")


@pytest.mark.parametrize(
    ("call", "few"),
    [
        ("message_cancel_key('a', 'k7')", FEW),
        ("channel_explain('a')", FEW),
        ("channel_overdue(5)", FEW),
        ("channel_page('c7', 'c7', 5)", FEW),
        ("channel_status", FEW),
        # The messages on 64 pages.
        ("channel_busiest(5)", 7 * FEW),
        ("queue_pulse()", 7 * FEW),
    ],
)
def test_a_call_does_not_read_the_whole_backlog_of_a_new_queue(session: Open, call: str, few: int) -> None:
    queue = session()
    queue.fill("a", MANY, keys=[f"k{n}" for n in range(MANY)])
    assert cost(queue, call) < few


@pytest.mark.parametrize(
    "call",
    [
        "message_peek(p_is_leased => true)",
        "dead_purge(array[1000001, 7])",
        "channel_delete('spare')",
        "message_dequeue(1)",
    ],
)
@pytest.mark.broken_on_purpose
def test_tables_full_of_dead_rows_do_not_mislead_other_calls(session: Open, call: str) -> None:
    """Thousands of channels and wakes are inserted directly."""
    queue, holder = session(), session()
    mislead(queue, holder)
    queue.fill("a", MANY)
    assert len(queue.take(50)) == 50
    queue.run(
        "insert into dead (message_id, channel, dequeue_at, created_at, buried_at, attempts, content)"
        " select 1000000 + n, 'd', 1, 1, 1, 1, 'x' from generate_series(1, %s) n",
        MANY,
    )
    queue.run("insert into channel (id, name) select n, 'idle ' || n from generate_series(1, %s) n", MANY)
    queue.run("insert into wake (lane, channel_id) select 2, n from generate_series(1, %s) n", MANY)
    queue.set("spare")
    queue.create("new")
    assert cost(queue, call) < 4 * DEAD
    holder.run("rollback")


def test_pages_of_the_table_turn_are_filled_completely(queue: Session) -> None:
    """No update of a turn is HOT, and a page that is fuller than its fillfactor is pruned at each visit."""
    queue.create_many(["a", "b", "c"] * 5)
    while queue.dequeue(2):
        pass
    flush_statistics(queue)
    updates = queue.rows(
        "select n_tup_upd > 0, n_tup_hot_upd from pg_stat_user_tables where relname = 'turn'"
    )
    assert updates == [(True, 0)]
    assert "fillfactor" not in queue.ask("select reloptions::text from pg_class where oid = 'turn'::regclass")


@pytest.mark.parametrize("is_analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.broken_on_purpose
def test_a_tenants_calls_do_not_read_the_rows_of_others(
    login: Login, queue: Session, is_analysed: bool
) -> None:
    """Otherwise their statistics and their duration would tell how many rows there are."""
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    tenant = login()
    queue.run("select queue_grant(%s, 'tenant', '{acme}', 'acme/')", role_of(tenant))
    for channel in ("acme", "acme/a"):
        queue.set(channel, max_size=100)
    queue.fill("other", MANY)
    queue.run("insert into channel (id, name) select n, 'other ' || n from generate_series(1, %s) n", MANY)
    queue.run(
        "insert into dead (message_id, channel, dequeue_at, created_at, buried_at, attempts, content)"
        " select 1000000 + n, 'other', 1, 1, 1, 1, 'x' from generate_series(1, %s) n",
        MANY,
    )
    queue.run(
        "insert into history"
        " (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, ended_at)"
        " select n, 1, 'other', 'completed', 1, 1, 1, to_epoch(now() + interval '2 days') + n"
        " from generate_series(1, %s) n",
        MANY,
    )
    queue.run(
        "insert into tenant select 'pg_monitor'::regrole, 'other ' || n, false from generate_series(1, %s) n",
        MANY,
    )
    if is_analysed:
        queue.run("vacuum analyze")
    tenant.run("select outcome from tenant_create('acme', 'x', p_key => 'k')")
    own = tenant.ask("select message_uuid from tenant_create('acme/a', 'x')")
    costs = {}
    for call in (
        "tenant_create('acme', 'x')",
        "tenant_create('acme/a', 'x', p_key => 'l')",
        "tenant_create_many('{acme,acme/a}', '{x,x}')",
        f"tenant_show('{{{own}}}')",
        "tenant_peek('acme')",
        "tenant_channels()",
        "tenant_dead_list()",
        "tenant_dead_list('acme')",
        "tenant_history_list('acme')",
        "tenant_redrive_channel('acme')",
        f"tenant_redrive('{{{own}}}')",
        f"tenant_cancel('{{{own}}}')",
        "tenant_cancel_key('acme', 'k')",
        *("tenant_status", "tenant_dead_letter", "tenant_history"),
    ):
        before = entries_read(queue)
        tenant.run(f"select * from {call}")
        flush_statistics(tenant)
        costs[call] = entries_read(queue) - before
    assert {call: read for call, read in costs.items() if read >= FEW} == {}
