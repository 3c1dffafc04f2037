"""Attacks on steps and groups: open transactions, stale tokens, races, exact caps, and many groups."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.plans.plan import flush_statistics
from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of
from tests.sql.test_groups import check, group, is_due

Call = Callable[[Session, "Scene"], object]
MANY = 100_000


class Scene:
    """A queue with a group that is left with a member, one that has ended, leases, and a dead letter."""

    def __init__(self, queue: Session) -> None:
        self.live, _ = group(queue, ["a", "b"])
        self.ended, _ = group(queue, ["a"])
        taken = {one.message_id: one for one in queue.take(3)}
        *self.leased, last = (taken[one] for one in sorted(taken))
        queue.complete([last])
        queue.fill("a", 4)
        self.leased += queue.take(4)
        queue.bury([self.leased.pop()])
        queue.create("a", delay_ms=3_600_000)
        queue.run("select channel_set('spare', '{}')")
        queue.run("update message_group set check_at = 0")
        self.ids = [id_ for (id_,) in queue.rows("select id from message")]

    def take(self) -> Reply:
        return self.leased.pop()


def end(verb: str) -> Call:
    return lambda queue, scene: queue.end(f"message_{verb}", [scene.take()])


def select(query: str) -> Call:
    return lambda queue, scene: queue.rows(query)


NEW: dict[str, Call] = {
    "advance": end("advance"),
    "check": lambda queue, scene: check(queue, scene.live, scene.ended),
    "sweep": select("select group_sweep()"),
    "group": lambda queue, scene: group(queue, ["a", "b", "new"]),
    "results": lambda queue, scene: queue.rows("select * from group_results(%s, 1)", scene.live),
}
OTHER: dict[str, Call] = {
    "create": lambda queue, scene: [queue.create(name) for name in ("a", "done", "new")],
    "create many": lambda queue, scene: queue.create_many(["a", "done", "other"]),
    "dequeue": lambda queue, scene: queue.dequeue_once(1),
    "complete": end("complete"),
    "defer": end("defer"),
    "bury": end("bury"),
    "give back": end("give_back"),
    "heartbeat": lambda queue, scene: queue.heartbeat(scene.leased),
    "cancel": lambda queue, scene: queue.cancel(*scene.ids),
    "run now": lambda queue, scene: queue.rows("select * from message_run_now(%s)", scene.ids),
    "redrive": select("select dead_redrive_channel('a')"),
    "channel_delete": select("select channel_delete('spare'), channel_delete('a'), channel_delete('done')"),
    "channel_set": select("""select channel_set('done', '{"max_concurrency": 3}')"""),
    "status": lambda queue, scene: queue.rows("select * from message_status_of(%s)", scene.ids),
}


@pytest.mark.parametrize("is_new_first", [True, False], ids=["they are open", "others are open"])
@pytest.mark.parametrize("new", NEW)
def test_no_call_waits_for_an_open_transaction(session: Open, new: str, is_new_first: bool) -> None:
    queue, slow = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    for name, call in {**OTHER, **NEW}.items():
        scene = Scene(queue)
        first, second = (NEW[new], call) if is_new_first else (call, NEW[new])
        first(slow, scene)
        try:
            second(queue, scene)
        except psycopg.errors.LockNotAvailable as error:
            raise AssertionError(f"{new} and {name} wait for each other") from error
        finally:
            slow.connection.rollback()
        queue.run("delete from message_group")
        queue.run("select message_cancel(array(select id from message))")
        queue.run("select lease_end_cancelled(array(select ctid from lease))")
        queue.run("delete from dead")


def test_a_step_of_a_capped_channel_goes_behind_and_counts_once(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    created = queue.fill("a", 3)
    (leased,) = queue.dequeue(5)
    for n in range(9):
        assert leased.message_id == created[n % 3]
        assert queue.dequeue_once(5)[0].outcome != "leased"
        queue.run("select pg_sleep(0.002)")
        assert queue.end("message_advance", [leased]) == ["advanced"]
        assert queue.problems() == []
        (leased,) = queue.dequeue(5)
        assert queue.problems() == []
    queue.complete([leased])
    assert len(queue.drain(5)) == 2


def test_a_step_waits_for_the_rate_of_its_channel(queue: Session) -> None:
    queue.set("a", release_interval_ms=300)
    queue.create("a")
    before = queue.lease()
    for _ in range(3):
        queue.end("message_advance", [before])
        leased = queue.lease()
        assert leased.leased_at - before.leased_at >= 299_000
        before = leased
    assert queue.problems() == []


def test_steps_of_leases_from_before_the_cap_are_counted_right(queue: Session) -> None:
    queue.fill("a", 3)
    taken = queue.take(3)
    queue.set("a", max_concurrency=2)
    queue.create("a")
    for one, room in zip(taken, (0, 1, 1), strict=True):
        assert queue.end("message_advance", [one]) == ["advanced"]
        assert queue.problems() == []
        assert len(queue.dequeue(5)) == room
        assert queue.problems() == []
    assert queue.ask("select count(*) from lease") == 2


def test_only_the_holder_of_the_lease_advances(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.set("a", max_concurrency=20)
    created = queue.fill("a", 6)
    stale = queue.take(6)
    queue.expire(stale)
    good = {one.message_id: one for one in queue.take(6)}
    assert sorted(good) == created
    before = queue.rows("select id, content, created_at, attempts from message order by id")
    contents = [b"evil"] * 6
    assert queue.end("message_advance", stale, contents, types=["bytea[]"]) == ["lease_lost"] * 6
    assert queue.rows("select id, content, created_at, attempts from message order by id") == before
    fine, twice, cancelled, locked, completed, buried = (good[one] for one in created)
    assert queue.end("message_advance", [twice]) == ["advanced"]
    assert queue.cancel(cancelled.message_id) == ["cancelled"]
    other.run("select from message where id = %s for update", locked.message_id)
    queue.complete([completed])
    queue.bury([buried])
    mixed = [fine, twice, cancelled, locked, completed, buried]
    outcomes = queue.end("message_advance", mixed, [b"next"] * 6, types=["bytea[]"])
    assert outcomes == ["advanced", "lease_lost", "cancelled", "busy", "lease_lost", "lease_lost"]
    other.connection.rollback()
    assert queue.end("message_advance", [locked]) == ["advanced"]
    for verb in ("complete", "defer", "bury", "give_back", "advance"):
        assert queue.end(f"message_{verb}", [fine]) == ["lease_lost"], verb
    assert queue.heartbeat([fine]) == ["lease_lost"]
    assert sorted(queue.rows("select id, content from message")) == [
        (fine.message_id, b"next"),
        (twice.message_id, b"x"),
        (locked.message_id, b"x"),
    ]
    assert queue.problems() == []


def test_a_repeated_id_advances_nothing(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    with pytest.raises(psycopg.Error, match="distinct"):
        queue.end("message_advance", [leased, leased])
    assert queue.heartbeat([leased]) == ["extended"]
    assert queue.complete([leased]) == ["completed"]


def test_stale_and_foreign_tokens_read_no_results(queue: Session) -> None:
    callback, members = group(queue, ["a", "b"])
    first, second = queue.take(2)
    results = "select message_id from group_results(%s, %s)"
    assert queue.rows(results, callback, first.token) == []
    queue.complete([first, second])
    check(queue, callback)
    stale = queue.lease()
    queue.expire([stale])
    (leased,) = queue.take(1)
    assert (leased.message_id, leased.attempt) == (callback, 2)
    assert queue.rows(results, callback, stale.token) == []
    assert queue.rows(results, None, None) == []
    assert [one for (one,) in queue.rows(results, callback, leased.token)] == members
    queue.complete([leased])
    assert queue.rows(results, callback, leased.token) == []


def test_a_deadline_that_comes_with_the_last_member_delivers_the_callback_once(queue: Session) -> None:
    callback, _ = group(queue, ["a"], deadline_ms=200)
    member = queue.lease()
    callback_lease = queue.lease()
    assert callback_lease.message_id == callback
    queue.complete([member])
    assert check(queue, callback) == ["released"]
    queue.run("update message_group set check_at = 0")
    queue.run("select group_sweep()")
    assert queue.dequeue(5) == []
    assert queue.complete([callback_lease]) == ["completed"]
    assert check(queue, callback) == ["released"]
    assert queue.drain() == []


def test_a_member_that_is_redriven_before_the_others_have_ended_counts_as_live(queue: Session) -> None:
    callback, members = group(queue, ["a", "b"])
    by_id = {one.message_id: one for one in queue.take(2)}
    queue.bury([by_id[members[0]]])
    assert check(queue, callback) == ["waiting"]
    assert queue.rows("select outcome from dead_redrive(%s)", [members[0]]) == [("redriven",)]
    queue.complete([by_id[members[1]]])
    assert check(queue, callback) == ["waiting"]
    again = queue.lease()
    assert again.message_id == members[0]
    queue.complete([again])
    assert check(queue, callback) == ["released"]


def test_a_callback_that_was_run_early_is_released_all_the_same(queue: Session) -> None:
    callback, _ = group(queue, ["a"], delays_ms=[3_600_000])
    queue.rows("select * from message_run_now(%s)", [callback])
    early = queue.lease()
    assert early.message_id == callback
    queue.bury([early])
    assert check(queue, callback) == ["waiting"]
    queue.run("select dead_redrive(%s)", [callback])
    assert queue.lease().message_id == callback


def test_odd_arrays_are_taken_as_they_are_read(queue: Session) -> None:
    made = queue.rows(
        "select * from group_create('[5:6]={a,b}', '{{x},{y}}', 'done', 'c',"
        " p_delays_ms => '[-1:0]={0,60000}', p_headers => '[0:1]={NULL,\"{}\"}')"
    )
    ((_, callback, members),) = made
    assert len(members) == 2
    assert queue.lease().message_id == members[0]
    assert check(queue, callback, callback) == ["waiting"] * 2
    assert queue.rows("select outcome from group_check(array[null::bigint])") == [("unknown",)]
    assert queue.rows("select outcome from group_check('{}')") == []
    nested = queue.rows("select outcome from group_check(array[array[%s::bigint], array[0]])", callback)
    assert nested == [("waiting",), ("unknown",)]


@pytest.mark.parametrize(
    ("arrays", "name"),
    [
        ("'{a,NULL}', '{x,y}'", "channel"),
        ("'{a,b}', '{x,NULL}'", "content"),
        ("'{a,b}', '{x}'", "contents"),
        ("'{a}', '{x}', p_max_attempts => '{0}'", "max_attempts"),
        ("'{a}', '{x}', p_delays_ms => '{-1}'", "delay"),
        ("'{a}', '{x}', p_callback_max_attempts => 0", "max_attempts"),
        ("'{a}', '{x}', p_callback_headers => '[1]'", "headers"),
        ("'{a}', '{x}', p_callback_key => ''", "key"),
    ],
)
def test_a_refused_group_leaves_nothing_behind(queue: Session, arrays: str, name: str) -> None:
    first, _, more = arrays.partition(", p_")
    named = f"{first}, 'done', 'c'{', p_' + more if more else ''}"
    with pytest.raises(psycopg.Error, match=name) as raised:
        queue.run(f"select group_create({named})")
    assert raised.value.sqlstate == "LQ001"
    for table in ("message", "message_group", "wake"):
        assert queue.ask(f"select count(*) from {table}") == 0


def test_a_dropped_group_leaves_nothing_behind(queue: Session) -> None:
    queue.set("full", max_size=1)
    wakes = queue.ask("select count(*) from wake")
    queue.rows("select group_create('{a,full,full}', '{x,y,z}', 'done', 'c', p_callback_key => 'k')")
    assert queue.ask("select count(*) from wake") == wakes
    assert queue.try_create("done", key="k")[0] == "created"
    assert queue.try_create("full")[0] == "created"


class Storm:
    """Sessions that create groups, and end members in every way, at once and without pauses."""

    def __init__(self, session: Open, seconds: float) -> None:
        self.session = session
        self.until = time.monotonic() + seconds
        self.created: set[int] = set()
        self.runs: Counter[int] = Counter()
        self.early: list[Any] = []
        self.errors: list[BaseException] = []
        self.is_quiet = False

    def thread(self, work: Callable[[Session, random.Random], None], seed: int) -> threading.Thread:
        queue = self.session()
        queue.run("set lock_timeout = '5s'")

        def run() -> None:
            try:
                work(queue, random.Random(seed))
            except BaseException as error:  # noqa: BLE001 - for the test to raise
                self.errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def produce(self, queue: Session, choose: random.Random) -> None:
        while time.monotonic() < self.until:
            queue.run("begin")
            channels = [f"c{choose.randrange(4)}" for _ in range(choose.randint(1, 6))]
            callback, _ = group(queue, channels)
            if choose.random() < 0.2:
                queue.run("rollback")
            else:
                self.created.add(callback)
                queue.run("commit")
            time.sleep(0.01)

    def work(self, queue: Session, choose: random.Random) -> None:
        while not self.is_quiet:
            for one in queue.dequeue_once(choose.randint(1, 5)):
                if one.outcome == "leased":
                    self.end(queue, one, choose)

    def end(self, queue: Session, one: Reply, choose: random.Random) -> None:
        if one.content == b"callback":
            rows = queue.rows("select status from group_results(%s, %s)", one.message_id, one.token)
            if queue.complete([one]) == ["completed"]:
                self.runs[one.message_id] += 1
                if not rows or {"waiting", "leased", "scheduled"} & {status for (status,) in rows}:
                    self.early.append((one.message_id, rows))
            return
        match choose.choice(["complete", "complete", "bury", "defer", "advance", "cancel", "expire", "open"]):
            case "cancel":
                queue.cancel(one.message_id)
                queue.complete([one])
            case "expire":
                queue.expire([one])
            case "open":
                queue.run("begin")
                queue.complete([one])
                time.sleep(0.005)
                queue.run("commit" if choose.random() < 0.7 else "rollback")
            case verb:
                queue.end(f"message_{verb}", [one])
        if choose.random() < 0.6 and one.headers:
            check(queue, int(one.headers["lonnymq-group"]))

    def sweep(self, queue: Session, choose: random.Random) -> None:
        while not self.is_quiet:
            queue.run(
                "update message_group set check_at = 0 where callback_id in"
                " (select callback_id from message_group order by random() limit 50 for update skip locked)"
            )
            queue.run("select group_sweep(%s)", choose.randint(1, 20))
            time.sleep(0.01)


@pytest.mark.race
def test_every_callback_runs_once_and_after_all_members(session: Open) -> None:
    queue = session()
    queue.set("c0", max_concurrency=1)
    queue.set("c1", max_concurrency=3)
    storm = Storm(session, 3)
    producers = [storm.thread(storm.produce, 1)]
    others = [storm.thread(storm.work, seed) for seed in (2, 3, 4)] + [storm.thread(storm.sweep, 5)]
    for thread in producers:
        thread.join()
    until = time.monotonic() + 90
    while not storm.errors and queue.ask("select count(*) from message") and time.monotonic() < until:
        # Leases that a rollback has left end at once.
        queue.run(
            "update lease set unlock_at = 0 where ctid in (select ctid from lease for update skip locked)"
        )
        time.sleep(0.2)
    storm.is_quiet = True
    for thread in others:
        thread.join()
    assert storm.errors == []
    assert storm.early == []
    assert storm.runs == Counter(storm.created)
    assert len(storm.created) > 20
    queue.run("update message_group set check_at = 0")
    while queue.ask("select group_sweep(1000)") == 0:
        pass
    assert queue.ask("select count(*) from message_group") == 0


def rows_read(queue: Session) -> tuple[int, int]:
    """Return how many index entries were read so far, and how many sequential scans there were."""
    flush_statistics(queue)
    entries = queue.ask("select sum(idx_tup_read)::bigint from pg_stat_user_indexes")
    scans = queue.ask(
        "select sum(seq_scan)::bigint from pg_stat_user_tables"
        " where relname in ('message_group', 'message', 'dead')"
    )
    return entries, scans


@pytest.mark.plan
@pytest.mark.parametrize("is_analysed", [False, True], ids=["never analysed", "analysed"])
def test_checks_read_few_rows_among_many_groups(queue: Session, is_analysed: bool) -> None:
    member = queue.create("a", delay_ms=3_600_000)
    created, _ = group(queue, ["a"], delays_ms=[3_600_000])
    queue.run(
        "insert into message_group (callback_id, members, created_at, deadline_at, check_at)"
        " select n, array[%s, %s], 1, 9000000000000000,"
        " case when n %% 100 = 0 then n else 9000000000000000 end"
        " from generate_series(1000001, 1000000 + %s) n",
        *(member + 1000, member, MANY),
    )
    if is_analysed:
        queue.run("vacuum (analyze) message_group, message")
    check(queue, 1)
    queue.run("select group_sweep(1)")
    ids = [created, *range(1_000_001, 1_000_050)]
    entries, scans = rows_read(queue)
    outcomes = queue.rows("select outcome, count(*) from group_check(%s) group by 1", ids)
    assert outcomes == [("waiting", 50)]
    after_check, scans_after = rows_read(queue)
    assert scans_after == scans
    assert after_check - entries < 20 * len(ids)
    queue.run("select group_sweep(100)")
    after_sweep, scans_after = rows_read(queue)
    assert scans_after == scans
    assert after_sweep - after_check < 30 * 100
    # None of those that are due has a callback, so they are gone.
    left = queue.ask("select count(*) from message_group where check_at < 2000000")
    assert left == MANY // 100 - 101
    while queue.ask("select group_sweep(100)") == 0:
        pass
    before, scans = rows_read(queue)
    queue.run("select group_sweep(100)")
    after, scans_after = rows_read(queue)
    assert (scans_after, after - before < 3000) == (scans, True)
    queue.run("delete from message_group")


def test_a_group_of_a_thousand_members_that_end_from_the_last_one_is_checked_quickly(queue: Session) -> None:
    """The worst order: each check must look past all members that have ended."""
    callback, members = group(queue, ["a"] * 1000)
    assert queue.cancel(*members[1:]) == ["cancelled"] * 999
    began = time.monotonic()
    assert check(queue, callback) == ["waiting"]
    assert time.monotonic() - began < 5
    assert not is_due(queue, callback)
    taken = queue.take(1)
    assert ids_of(taken) == members[:1]
    queue.complete(taken)
    assert check(queue, callback) == ["released"]
