"""Rules 9 and 14: stamps from before the clock stepped back count as now, and our clock does not leap."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import Connect
from tests.races.sessions import Session, ask, complete, create, dequeue, drain, value, work_until

pytestmark = pytest.mark.race

SECOND_US = 1_000_000


def step_back(session: Session, by_s: int) -> None:
    """As if everything so far had happened later, also in what the session remembers."""
    by = by_s * SECOND_US
    session.execute(
        "update turn set next_at = next_at + %s, last_at = last_at + %s, release_at = release_at + %s",
        [by, by, by],
    )
    source: str = value(session, "select prosrc from pg_proc where proname = 'message_dequeue'")
    prefix = source.partition("'lonnymq.hints")[2].partition("'")[0]
    name = "lonnymq.hints" + prefix + value(session, "select 'turn'::regclass::oid::text")
    hints = value(session, "select coalesce(current_setting(%s, true), '')", name)
    now = time.time() * SECOND_US
    moved = [
        str(int(hint) + by) if hint.isdigit() and abs(int(hint) - now) < 60 * SECOND_US else hint
        for hint in hints.split(",")
    ]
    session.execute("select set_config(%s, %s, false)", [name, ",".join(moved)])


@pytest.mark.parametrize("is_warm", [False, True], ids=["fresh session", "warm session"])
def test_ready_channels_are_served_when_the_clock_has_stepped_back(connect: Connect, is_warm: bool) -> None:
    session = connect()
    policies = {"free": "{}", "limited": '{"release_interval_ms": 50}', "capped": '{"max_concurrency": 2}'}
    for by_s in (20, 1800, 3600, 86_400):
        for channel, policy in policies.items():
            session.execute("select channel_set(%s, %s)", [channel, policy])
            create(session, channel, 5)
        assert len(work_until(session, lambda worked: len(worked) >= 3, limit=3)) == 3
        step_back(session, by_s)
        worker = session if is_warm else connect()
        assert len(work_until(worker, lambda worked: len(worked) == 12)) == 12, by_s
        for channel in policies:
            create(session, channel)
        assert len(work_until(worker, lambda worked: len(worked) == 3)) == 3, by_s


def test_messages_that_come_after_the_step_are_served_although_the_mark_is_ahead(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    drain(session)
    step_back(session, 3600)
    session.execute("update turn set mark_at = mark_at + 3600000")
    ids = create(session, "a", 3) + create(session, "a", 3)
    assert [one.id for one in drain(connect(), limit=2)] == ids


def test_many_channels_take_turns_again(connect: Connect) -> None:
    session = connect()
    for _ in range(3):
        for n in range(0, 2000, 500):
            create_each(session, n)
    before = work_until(session, lambda worked: len(worked) >= 2000, limit=500, within_s=15)
    step_back(session, 3600)
    left = 6000 - len(before)
    worked = work_until(connect(), lambda worked: len(worked) >= left, limit=500, within_s=15)
    assert len(worked) == left


def test_a_worker_does_not_sleep_through_the_step(connect: Connect) -> None:
    session = connect()
    create(session, "a", 2)
    complete(session, dequeue(session))
    assert ask(session).leased
    session.execute("update turn set next_at = last_at")
    step_back(session, 3600)
    create(session, "b")
    complete(session, dequeue(session))
    answer = ask(session)
    assert answer.outcome == "empty"
    assert (answer.wait_ms or 0) <= 60_000


def create_each(session: Session, first: int) -> None:
    session.execute(
        "select count(*) from message_create_many("
        "array(select 'c' || g from generate_series(%s::integer, %s::integer) g),"
        " array(select 'x'::bytea from generate_series(1, 500)))",
        [first, first + 499],
    )


def test_to_epoch_counts_no_second_twice(connect: Connect) -> None:
    session = connect()
    start = datetime(2024, 2, 29, 23, 59, 58, 999_999, tzinfo=UTC)
    instants = [start + timedelta(milliseconds=137 * n) for n in range(1000)] + [
        datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC),
        datetime(1901, 1, 1, 0, 0, 30, 1, tzinfo=UTC),
    ]
    answered = [value(session, "select to_epoch(%s)", instant) for instant in instants]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert answered == [(instant - epoch) // timedelta(milliseconds=1) for instant in instants]


def test_every_clock_of_the_queue_is_the_same_and_never_steps_back_by_itself(connect: Connect) -> None:
    session = connect()
    last = 0
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        before = time.time()
        create(session, "a")
        (leased,) = dequeue(session)
        created_at = value(session, "select created_at from message")
        unlock_at = value(session, "select unlock_at from lease")
        for at in (created_at / 1e3, leased.leased_at / 1e6, unlock_at / 1e6 - 30):
            assert before - 1 < at < time.time() + 1
        assert leased.leased_at > last
        last = leased.leased_at
        complete(session, [leased])


def test_settle_calls_no_volatile_function_of_ours_before_it_has_written_the_turn(connect: Connect) -> None:
    """It would read with a snapshot of its own."""
    called = connect().execute(
        "select p.proname, settle.proname from pg_proc p, pg_proc settle"
        " where settle.proname in ('message_settle', 'message_settle_one') and p.provolatile = 'v'"
        " and p.pronamespace = 'lonnymq'::regnamespace and settle.pronamespace = p.pronamespace"
        " and split_part(settle.prosrc, 'update turn', 1) ~ ('\\m' || p.proname || '\\s*\\(')"
    )
    assert called.fetchall() == []


def test_leases_of_a_dead_worker_expire_although_the_clock_stepped_back(connect: Connect) -> None:
    session = connect()
    session.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    create(session, "a")
    assert dequeue(session, lease_ms=100)
    step_back(session, 3600)
    session.execute("update lease set leased_at = leased_at + 3600000000, unlock_at = unlock_at + 3600000000")
    assert len(work_until(session, lambda worked: len(worked) == 1)) == 1


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]], ids=["one turn", "three turns"])
@pytest.mark.parametrize("delay_ms", [0, 3_600_000], ids=["by a message", "by a scheduled one"])
def test_a_small_step_back_delays_nobody_who_wakes(connect: Connect, names: list[str], delay_ms: int) -> None:
    """Smaller than what the sweep looks for: settling knows it by itself."""
    session = connect()
    for name in names:
        create(session, name, 3)
    assert len(dequeue(session, len(names))) == len(names)
    session.execute("update turn set next_at = next_at + 900000, last_at = last_at + 900000")
    for name in names:
        session.execute("select message_create(%s, 'x', p_delay_ms => %s)", [name, delay_ms])
    assert len(dequeue(connect(), 100)) == (3 if delay_ms == 0 else 2) * len(names)
    now = "extract(epoch from clock_timestamp()) * 1000000"
    assert value(session, f"select max(last_at) <= {now} from turn")


def test_a_session_that_never_runs_dry_looks_at_everything_after_the_step(connect: Connect) -> None:
    """Others' messages keep coming, so that it never runs out of hints; its last look is in the future."""
    session = connect()
    create(session, "old", 3)
    assert len(work_until(session, lambda worked: len(worked) == 2)) == 2
    step_back(session, 3600)
    until = time.monotonic() + 5
    served: set[str] = set()
    while "old" not in served:
        assert time.monotonic() < until
        create(session, "other", 3)
        leased = dequeue(session)
        complete(session, leased)
        served |= {one.channel for one in leased}
    drain(session)
