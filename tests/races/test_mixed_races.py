"""Everything at once: what was made is completed, buried or cancelled, once; caps and intervals hold."""

import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from tests.conftest import Connect
from tests.races import mixed
from tests.races.load import Load, processes
from tests.races.sessions import Session, ask, check, value, wait_for
from tests.races.watching import Watch

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.timeout(0)]

SECONDS = float(os.environ.get("LONNYMQ_RACE_SECONDS", 6))


def test_nothing_is_lost_or_done_twice_whatever_happens(connect: Connect, dsn: str) -> None:
    owner = connect()
    mixed.prepare(owner)
    with processes(4) as pool, Watch(connect()) as watch:
        until = time.time() + SECONDS + 1
        roles = [
            repeat(connect(), mixed.cancel_some, until, pause_s=0.02),
            repeat(connect(), mixed.operate, until, pause_s=0.02),
            repeat(connect(), cut_off_a_worker, until, pause_s=0.3),
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
    print(value(owner, "select count(*) from public.made"), "messages,", watch.looks, "looks")
    # The cap of a fickle channel may be set below what is leased already.
    assert [problem for problem in watch.problems if "fickle" not in str(problem)] == []
    assert_accounts_balance(owner)
    assert_intervals_held(owner)
    assert check(owner) == []


def repeat(
    session: Session, role: Callable[[Session, random.Random], None], until: float, *, pause_s: float
) -> threading.Thread:
    def run() -> None:
        chance = random.Random(role.__name__)
        while time.time() < until:
            role(session, chance)
            time.sleep(pause_s)

    return threading.Thread(target=run)


def cut_off_a_worker(session: Session, chance: random.Random) -> None:
    session.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'victim' and datname = current_database() order by random() limit 1"
    )


def kill_workers(dsn: str, until: float) -> None:
    """Workers that live for a moment and are killed with SIGKILL, wherever they are."""
    spawn = multiprocessing.get_context("spawn")
    chance = random.Random(7)
    while time.time() < until - 1:
        process = spawn.Process(
            target=mixed.work_mixed, args=[Load(dsn, 0, until, 8, chance.randrange(1000))]
        )
        process.start()
        process.join(0.6 + chance.random() * 0.5)
        process.kill()
        process.join()
        process.close()


def finish(owner: Session) -> None:
    """One well-behaved worker does the rest, also of those whose leases have yet to expire."""
    for channel in mixed.FICKLE:
        mixed.set_policy(owner, channel, '{"is_paused": false, "max_concurrency": null}')
    until = time.monotonic() + 60
    while value(owner, "select count(*) from message") and time.monotonic() < until:
        leased = ask(owner, 50).leased
        if leased:
            mixed.complete_in_ledger(owner, leased)
        else:
            time.sleep(0.01)
    assert value(owner, "select count(*) from message") == 0
    owner.execute("update lease set unlock_at = 0")
    wait_for(lambda: ask(owner).outcome == "empty" and value(owner, "select count(*) from lease") == 0)


def assert_accounts_balance(owner: Session) -> None:
    owner.execute(
        "create table public.ends as"
        " select id, how from public.ended union all select message_id, 'buried' from dead"
    )
    twice = owner.execute(
        "select id, array_agg(how) from public.ends group by id having count(*) > 1"
    ).fetchall()
    lost = owner.execute("select id from public.made except select id from public.ends").fetchall()
    from_nowhere = owner.execute("select id from public.ends except select id from public.made").fetchall()
    assert (twice, lost, from_nowhere) == ([], [], [])
    hows = {row[0] for row in owner.execute("select distinct how from public.ends").fetchall()}
    assert hows == {"completed", "cancelled", "buried"}


def assert_intervals_held(owner: Session) -> None:
    """Every release that was committed is written down; the ones of limited channels keep their distance."""
    too_close = owner.execute(
        "select name, gap from (select c.name, r.leased_at - lag(r.leased_at) over"
        " (partition by r.channel_id order by r.leased_at) as gap"
        " from public.released r join channel c on c.id = r.channel_id and c.name = any(%s)) g"
        " where gap < %s",
        [mixed.LIMITED, mixed.INTERVAL_MS * 1000],
    ).fetchall()
    assert too_close == []
