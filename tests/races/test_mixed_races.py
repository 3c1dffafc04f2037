"""Everything at once: every message is completed, buried or cancelled exactly once, and all limits hold."""

import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from tests.conftest import Connect
from tests.forked import FORK_SERVER
from tests.races import mixed
from tests.races.load import Load, processes
from tests.races.monitor import InvariantMonitor
from tests.races.sessions import Session, ask, check, value, wait_for

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.timeout(0)]

SECONDS = float(os.environ.get("LONNYMQ_RACE_SECONDS", 4))


def test_no_message_is_lost_or_processed_twice_under_mixed_load(connect: Connect, dsn: str) -> None:
    owner = connect()
    mixed.prepare(owner)
    with processes(4) as pool, InvariantMonitor(connect()) as monitor:
        until = time.time() + SECONDS + 1
        roles = [
            repeat(connect(), mixed.cancel_some, until, pause_s=0.02),
            repeat(connect(), mixed.operate, until, pause_s=0.02),
            repeat(connect(), terminate_a_session, until, pause_s=0.3),
            threading.Thread(target=kill_workers, args=[dsn, until]),
        ]
        work = [pool.submit(mixed.produce_mixed, Load(dsn, 0, until, 1, 1))]
        work += [pool.submit(mixed.work_mixed, Load(dsn, 0, until, 8, seed)) for seed in range(3)]
        for role in roles:
            role.start()
        for role in roles:
            role.join()
        for future in work:
            future.result()
    finish(owner)
    print(value(owner, "select count(*) from public.created"), "messages,", monitor.checks, "checks")
    # The cap of a changing channel may be set below the number of its leases.
    assert [problem for problem in monitor.problems if "changing" not in str(problem)] == []
    assert_each_message_ended_once(owner)
    assert_rate_limits_held(owner)
    assert check(owner) == []


def repeat(
    session: Session, role: Callable[[Session, random.Random], None], until: float, *, pause_s: float
) -> threading.Thread:
    def run() -> None:
        rng = random.Random(role.__name__)
        while time.time() < until:
            role(session, rng)
            time.sleep(pause_s)

    return threading.Thread(target=run)


def terminate_a_session(session: Session, rng: random.Random) -> None:
    session.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'victim' and datname = current_database() order by random() limit 1"
    )


def kill_workers(dsn: str, until: float) -> None:
    """Start workers and kill them with SIGKILL after a short time."""
    rng = random.Random(7)
    while time.time() < until - 1:
        process = FORK_SERVER.Process(
            target=mixed.work_mixed, args=[Load(dsn, 0, until, 8, rng.randrange(1000))]
        )
        process.start()
        process.join(0.6 + rng.random() * 0.5)
        process.kill()
        process.join()
        process.close()


def finish(owner: Session) -> None:
    """Work the remaining messages, including those whose leases must expire first."""
    for channel in mixed.CHANGING:
        mixed.set_policy(owner, channel, '{"is_paused": false, "max_concurrency": null}')
    until = time.monotonic() + 60
    while value(owner, "select count(*) from message") and time.monotonic() < until:
        leased = ask(owner, 50).leased
        if leased:
            mixed.complete_and_record(owner, leased)
        else:
            time.sleep(0.01)
    assert value(owner, "select count(*) from message") == 0
    owner.execute("update lease set unlock_at = 0")
    wait_for(lambda: ask(owner).outcome == "empty" and value(owner, "select count(*) from lease") == 0)


def assert_each_message_ended_once(owner: Session) -> None:
    owner.execute(
        "create table public.ends as"
        " select id, how from public.ended union all select message_id, 'buried' from dead"
    )
    twice = owner.execute(
        "select id, array_agg(how) from public.ends group by id having count(*) > 1"
    ).fetchall()
    lost = owner.execute("select id from public.created except select id from public.ends").fetchall()
    from_nowhere = owner.execute("select id from public.ends except select id from public.created").fetchall()
    assert (twice, lost, from_nowhere) == ([], [], [])
    hows = {row[0] for row in owner.execute("select distinct how from public.ends").fetchall()}
    assert hows == {"completed", "cancelled", "buried"}


def assert_rate_limits_held(owner: Session) -> None:
    """All committed releases are recorded; those of rate-limited channels must be an interval apart."""
    too_close = owner.execute(
        "select name, gap from (select c.name, r.leased_at - lag(r.leased_at) over"
        " (partition by r.channel_id order by r.leased_at) as gap"
        " from public.released r join channel c on c.id = r.channel_id and c.name = any(%s)) g"
        " where gap < %s",
        [mixed.LIMITED, mixed.INTERVAL_MS * 1000],
    ).fetchall()
    assert too_close == []
