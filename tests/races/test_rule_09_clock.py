"""Rules 9 and 14: timestamps from before the clock stepped back count as now, and there is one clock."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from lonnymq import Queue
from lonnymq.testing import Clock
from tests.conftest import Connect
from tests.races.sessions import Session, ask, complete, create, dequeue, drain, end, value, work_until
from tests.races.sleeper import Sleeper

pytestmark = pytest.mark.race

SECOND_US = 1_000_000


def step_back(session: Session, by_s: int) -> None:
    """Move all timestamps forward, including the session's hints, as if the clock had stepped back."""
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

    def move(found: re.Match[str]) -> str:
        at = int(found[0])
        return str(at + by) if abs(at - now) < 60 * SECOND_US else found[0]

    moved = re.sub(r"\d+", move, hints)
    session.execute("select set_config(%s, %s, false)", [name, moved])


@pytest.mark.parametrize("is_warm", [False, True], ids=["fresh session", "warm session"])
def test_due_channels_are_served_after_the_clock_stepped_back(connect: Connect, is_warm: bool) -> None:
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


def test_messages_created_after_the_step_are_served_below_the_mark(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    drain(session)
    step_back(session, 3600)
    session.execute("update turn set mark_at = mark_at + 3600000")
    ids = create(session, "a", 3) + create(session, "a", 3)
    assert [one.id for one in drain(connect(), limit=2)] == ids


def test_many_channels_take_turns_after_the_step(connect: Connect) -> None:
    session = connect()
    for _ in range(3):
        for n in range(0, 2000, 500):
            create_each(session, n)
    before = work_until(session, lambda worked: len(worked) >= 2000, limit=500, within_s=15)
    step_back(session, 3600)
    left = 6000 - len(before)
    worked = work_until(connect(), lambda worked: len(worked) >= left, limit=500, within_s=15)
    assert len(worked) == left


def test_a_worker_is_not_told_to_sleep_longer_after_the_step(connect: Connect) -> None:
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


def test_to_epoch_is_exact_at_the_turn_of_a_minute(connect: Connect) -> None:
    session = connect()
    start = datetime(2024, 2, 29, 23, 59, 58, 999_999, tzinfo=UTC)
    instants = [start + timedelta(milliseconds=137 * n) for n in range(1000)] + [
        datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC),
        datetime(1901, 1, 1, 0, 0, 30, 1, tzinfo=UTC),
    ]
    answered = [value(session, "select to_epoch(%s)", instant) for instant in instants]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert answered == [(instant - epoch) // timedelta(milliseconds=1) for instant in instants]


def test_all_timestamps_of_the_queue_come_from_one_clock(connect: Connect) -> None:
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


def test_settle_calls_no_volatile_function_before_it_writes_the_turn(connect: Connect) -> None:
    """A volatile function would read with a snapshot of its own, unless it is inlined."""
    called = connect().execute(
        "select p.proname, settle.proname from pg_proc p, pg_proc settle, split_part(settle.prosrc,"
        "   case settle.proname when 'message_dequeue' then 'with next as' else 'begin' end, 2) body"
        " where settle.proname in ('message_settle', 'message_dequeue') and p.provolatile = 'v'"
        " and p.proname <> 'lease_token' and p.pronamespace = 'lonnymq'::regnamespace"
        " and settle.pronamespace = p.pronamespace"
        " and split_part(body, 'update turn', 1) ~ ('\\m' || p.proname || '\\s*\\(')"
    )
    assert called.fetchall() == []


def test_leases_of_a_dead_worker_expire_after_the_step(connect: Connect) -> None:
    session = connect()
    session.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    create(session, "a")
    assert dequeue(session, lease_ms=100)
    step_back(session, 3600)
    session.execute("update lease set leased_at = leased_at + 3600000000, unlock_at = unlock_at + 3600000000")
    assert len(work_until(session, lambda worked: len(worked) == 1)) == 1


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]], ids=["one turn", "three turns"])
@pytest.mark.parametrize("delay_ms", [0, 3_600_000], ids=["by a due message", "by a scheduled message"])
def test_a_small_step_back_delays_no_channel_that_wakes(
    connect: Connect, names: list[str], delay_ms: int
) -> None:
    """The step is smaller than what clock_step_fix looks for; turn_assess handles it."""
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


def test_a_session_that_is_always_busy_still_makes_a_full_scan(connect: Connect) -> None:
    """New messages keep arriving, so its hints never run out, and its last full scan is in the future."""
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


@pytest.fixture
def clock(dsn: str, connect: Connect) -> Session:
    """A session that can move the queue's clock forwards and backwards."""
    with Queue(dsn) as queue:
        Clock.install(queue)
    return connect()


def move(clock: Session, seconds: int) -> None:
    clock.execute("select clock_advance(make_interval(secs => %s))", [seconds])


def reasons(session: Session) -> dict[str, str]:
    return dict(session.execute("select channel, reason from channel_status"))


NOW_POLICIES = {"free": "{}", "capped": '{"max_concurrency": 2}', "limited": '{"release_interval_ms": 1}'}


@pytest.mark.parametrize("by_s", [3, 3600, 200_000])
@pytest.mark.parametrize("is_seen", [False, True], ids=["before any dequeue", "after one"])
def test_messages_created_for_now_do_not_wait_for_the_old_clock(
    clock: Session, connect: Connect, by_s: int, is_seen: bool
) -> None:
    worker = connect()
    ids: dict[str, list[int]] = {}
    for channel, policy in NOW_POLICIES.items():
        clock.execute("select channel_set(%s, %s)", [channel, policy])
        ids[channel] = create(clock, channel, 6)
    worked = work_until(worker, lambda worked: len(worked) >= 3, limit=3) if is_seen else []
    move(clock, -by_s)
    # The next release of a rate-limited channel is at most an interval away.
    assert set(reasons(clock).values()) <= {"ready", "throttled"}
    assert not value(clock, "select bool_or(next_release_at > now() + interval '50 ms') from channel_status")
    assert {row[0] for row in clock.execute("select status from message_status")} == {"waiting"}
    assert value(clock, "select claim_backlog()") == 18 - len(worked)
    worked += work_until(worker, lambda more: len(worked) + len(more) == 18, limit=5)
    for channel, created in ids.items():
        assert [one.id for one in worked if one.channel == channel] == created


def test_scheduled_and_deferred_messages_wait_by_the_new_clock(clock: Session, connect: Connect) -> None:
    (deferred,) = create(clock, "deferred")
    worker = connect()
    assert end(worker, "defer", dequeue(worker)) == ["deferred"]
    for seconds in (0, 1, 100):
        name = f"in {seconds} s"
        clock.execute("select message_create(%s, 'x', p_delay_ms => %s)", [name, 1000 * seconds + 50])
    at = value(clock, "select to_epoch(clock_timestamp()) + 50000")
    (scheduled,) = create(clock, "at a time", at=at)
    move(clock, -3600)
    assert dequeue(worker, 10) == dequeue(connect(), 10) == []
    assert set(reasons(clock).values()) == {"scheduled"}
    assert {row[0] for row in clock.execute("select status from message_peek()")} == {"scheduled"}
    move(clock, 3602)
    assert deferred in {one.id for one in drain(connect())}
    move(clock, 200)
    assert scheduled in {one.id for one in drain(connect())}
    assert value(clock, "select count(*) from message") == 0


def test_a_scheduled_message_does_not_hide_those_created_for_now(clock: Session, connect: Connect) -> None:
    worker = connect()
    create(clock, "a")
    drain(worker)
    first = create(clock, "a", 2)
    at = value(clock, "select to_epoch(clock_timestamp()) + 20")
    (scheduled,) = create(clock, "a", at=at)
    move(clock, 1)
    last = create(clock, "a", 2)
    move(clock, -600)
    assert [one.id for one in drain(worker)] == first + last
    move(clock, 600)
    assert [one.id for one in drain(connect())] == [scheduled]


@pytest.mark.parametrize("scheduled", [10, 30, 5000])
def test_many_scheduled_messages_do_not_hide_those_created_for_now(
    clock: Session, connect: Connect, scheduled: int
) -> None:
    clock.execute("select channel_pause('a')")
    first = value(clock, "select to_epoch(clock_timestamp()) + 60000")
    clock.execute(
        "select count(*) from message_create_many(array_fill('a'::text, array[%s]),"
        " array_fill('x'::bytea, array[%s]), array(select %s::bigint + g from generate_series(1, %s) g))",
        [scheduled, scheduled, first, scheduled],
    )
    dequeue(connect())
    move(clock, 1800)
    ids = create(clock, "a", 3)
    move(clock, -3600)
    clock.execute("select channel_resume('a')")
    worker = connect()
    worked: list[int] = []
    for _ in range(12):
        leased = dequeue(worker, 10)
        complete(worker, leased)
        worked += [one.id for one in leased]
        move(clock, 11)
    assert worked == ids


def test_channels_with_scheduled_messages_do_not_hide_other_channels(
    clock: Session, connect: Connect
) -> None:
    """There are more of them than clock_step_fix samples."""
    worker = connect()
    for n in range(0, 1500, 500):
        clock.execute(
            "select count(*) from message_create_many("
            "array(select 'c' || g from generate_series(%s::integer, %s::integer) g),"
            " array_fill('x'::bytea, array[500]), null, array_fill(600000::bigint, array[500]))",
            [n, n + 499],
        )
    for _ in range(40):
        assert dequeue(worker, 500) == []
    clock.execute("select channel_pause('z')")
    move(clock, 300)
    ids = create(clock, "z", 2)
    for _ in range(3):
        assert dequeue(worker, 500) == []
    move(clock, -600)
    clock.execute("update channel set is_paused = false")
    worked: list[int] = []
    for _ in range(4):
        leased = dequeue(worker, 10)
        complete(worker, leased)
        worked += [one.id for one in leased]
        move(clock, 11)
    assert worked == ids


def test_the_order_of_a_channel_survives_the_step(clock: Session, connect: Connect) -> None:
    """The order is by (dequeue_at, id), also where ids decrease by a priority or a long transaction."""
    late = connect()
    late.execute("begin")
    late.execute("select now()")
    now = value(clock, "select to_epoch(clock_timestamp())")
    create(clock, "a", 5)
    create(late, "a", 3)
    late.execute("commit")
    for before in (60_000, 30_000, 90_000):
        create(clock, "a", 2, at=now - before)
    create(clock, "a", 1, at=-5)
    create(clock, "a", 11_000)
    expected = [row[0] for row in clock.execute("select id from message order by dequeue_at, id")]
    move(clock, -3600)
    (new,) = create(clock, "b")
    worked = work_until(connect(), lambda worked: len(worked) == 11_016, limit=500, within_s=60)
    assert [one.id for one in worked if one.id != new] == expected


@pytest.mark.parametrize("ending", ["give_back", "expiry"])
def test_a_message_whose_lease_ends_after_the_step_returns(
    clock: Session, connect: Connect, ending: str
) -> None:
    ids = create(clock, "a", 2)
    worker = connect()
    leased = dequeue(worker, 2)
    move(clock, -3600)
    if ending == "give_back":
        end(worker, "give_back", leased)
    else:
        clock.execute("update lease set unlock_at = 0")
    worked = work_until(connect(), lambda worked: len(worked) == 2, limit=2)
    assert [one.id for one in worked] == ids


@pytest.mark.parametrize("held", ["paused", "full"])
def test_a_paused_or_full_channel_is_served_after_the_step(
    clock: Session, connect: Connect, held: str
) -> None:
    clock.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    ids = create(clock, "a", 3)
    worker = connect()
    leased = dequeue(worker)
    if held == "paused":
        clock.execute("select channel_pause('a')")
    assert ask(worker).outcome == "empty"
    move(clock, -3600)
    assert complete(worker, leased) == ["completed"]
    if held == "paused":
        assert ask(connect()).outcome == "empty"
        clock.execute("select channel_resume('a')")
    worked = work_until(connect(), lambda worked: len(worked) == 2)
    assert [one.id for one in worked] == ids[1:]


def test_a_sleeper_is_notified_of_messages_that_the_step_delayed(clock: Session, connect: Connect) -> None:
    create(clock, "a", 2)
    move(clock, -3600)
    sleeper = Sleeper(connect(), "s")
    sleeper.session.execute("select sleeper_register('s', 60000)")
    assert len(dequeue(connect())) == 1
    assert sleeper.sleep(max_s=5)


def test_without_a_step_no_message_is_rewritten(connect: Connect) -> None:
    session = connect()
    for n in range(20):
        session.execute("select message_create(%s, 'x', p_delay_ms => %s)", [f"c{n}", 60_000 + n])
        create(session, f"c{n}", at=value(session, "select to_epoch(now()) + 5000"))
    before = session.execute("select ctid::text, xmin::text from message order by id").fetchall()
    for _ in range(5):
        assert dequeue(connect(), 100) == []
    assert session.execute("select ctid::text, xmin::text from message order by id").fetchall() == before
    assert value(session, "select count(*) from wake") == 0
