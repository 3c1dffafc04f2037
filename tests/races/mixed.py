"""The roles of the mixed race: producers, workers that behave in every way, cancellers, operators.

What was made and what ended is written down in the transaction that does it, so that nothing is counted that
a rollback or a kill has undone.
"""

import random
import threading
import time

import psycopg

from tests.races.load import Load, session
from tests.races.sessions import Leased, Session, ask, end

PLAIN = [f"plain {n}" for n in range(6)]
CAPPED = [f"capped {n}" for n in range(6)]
LIMITED = ["limited 0", "limited 1"]
FICKLE = ["fickle 0", "fickle 1"]
SHORT = ["short 0", "short 1", "short 2"]
CAP, INTERVAL_MS, LEASE_MS = 2, 30, 600

LEDGER = """
    create table made (id bigint);
    create table ended (id bigint, how text);
    create unlogged table released (id bigint, channel_id bigint, leased_at bigint);
    create function note_release() returns trigger language plpgsql as $$
      begin
        insert into public.released values (new.message_id, new.channel_id, new.leased_at);
        return null;
      end
    $$;
    create trigger note_release after insert on lonnymq.lease for each row execute function note_release();
"""


def prepare(owner: Session) -> None:
    owner.execute("set search_path = public")
    owner.execute(LEDGER)
    owner.execute("set search_path = lonnymq")
    for channel in CAPPED:
        set_policy(owner, channel, f'{{"max_concurrency": {CAP}}}')
    for channel in LIMITED:
        set_policy(owner, channel, f'{{"release_interval_ms": {INTERVAL_MS}}}')
    for channel in FICKLE:
        set_policy(owner, channel, '{"max_attempts": 3}')


def set_policy(owner: Session, channel: str, policy: str) -> None:
    owner.execute("select channel_set(%s, %s)", [channel, policy])


def produce_mixed(load: Load) -> None:
    """Ten producers at once, each with a session of its own."""
    threads = [threading.Thread(target=produce_one, args=[load, load.seed * 100 + n]) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def produce_one(load: Load, seed: int) -> None:
    chance = random.Random(seed)
    with session(load.dsn) as connection:
        while time.time() < load.until:
            connection.execute("begin")
            for _ in range(chance.randrange(1, 4)):
                create_any(connection, chance)
            if chance.random() < 0.1:
                time.sleep(1 + chance.random())
            connection.execute("rollback" if chance.random() < 0.1 else "commit")
            time.sleep(chance.random() * 0.02)


def create_any(connection: Session, chance: random.Random) -> None:
    """Now, later, urgent, with a key, one or many; at most a few for the channels that are slow by policy."""
    channel = chance.choice(
        PLAIN * 3 + CAPPED * 2 + FICKLE + SHORT + (LIMITED if chance.random() < 0.3 else [])
    )
    count = 1 if channel in LIMITED else chance.choice([1, 1, 5])
    now = int(time.time() * 1000)
    ats = [chance.choice([None, now + chance.randrange(500), chance.randrange(-5, 1)]) for _ in range(count)]
    # A key waits for an open transaction that holds it: each producer has its own, so that nobody deadlocks.
    keys = [
        f"{id(connection)} {chance.randrange(50)}" if chance.random() < 0.2 else None for _ in range(count)
    ]
    connection.execute(
        "insert into public.made select message_id from"
        " message_create_many(%s::text[], %s::bytea[], p_dequeue_ats => %s::bigint[], p_keys => %s::text[])"
        " where outcome = 'created'",
        [[channel] * count, [b"x"] * count, ats, keys],
    )


def work_mixed(load: Load) -> None:
    """Behaves in every way a worker can, until the end; cut-off connections are opened again."""
    chance = random.Random(load.seed)
    while time.time() < load.until:
        try:
            with session(load.dsn, application_name="victim") as connection:
                while time.time() < load.until:
                    behave(connection, chance, load.batch)
        except psycopg.OperationalError:
            pass


def behave(connection: Session, chance: random.Random, batch: int) -> None:
    way = chance.choices(
        ["complete", "defer", "bury", "give_back", "heartbeat", "abandon", "roll back", "stall"],
        [60, 10, 3, 5, 5, 5, 7, 5],
    )[0]
    connection.execute("begin")
    leased = ask(connection, chance.randrange(1, batch), lease_ms=LEASE_MS).leased
    if way == "stall":
        time.sleep(chance.random() * 0.1)
    connection.execute("rollback" if way == "roll back" else "commit")
    if not leased or way in ("abandon", "roll back"):
        return
    if way == "heartbeat":
        keep = "select count(*) from message_heartbeat(%s::bigint[], %s::bigint[], %s)"
        connection.execute(keep, [[one.id for one in leased], [one.token for one in leased], LEASE_MS])
    if way in ("defer", "bury", "give_back"):
        end(connection, way, leased)
    else:
        connection.execute("begin")
        complete_in_ledger(connection, leased)
        time.sleep(chance.choice([0, 0, 0.01]))
        connection.execute(chance.choices(["commit", "rollback"], [9, 1])[0])


def complete_in_ledger(connection: Session, leased: list[Leased]) -> None:
    connection.execute(
        "insert into public.ended select message_id, outcome"
        " from message_complete(%s::bigint[], %s::bigint[]) where outcome = 'completed'",
        [[one.id for one in leased], [one.token for one in leased]],
    )


def cancel_some(connection: Session, chance: random.Random) -> None:
    connection.execute("begin")
    connection.execute(
        "insert into public.ended select message_id, outcome from message_cancel(array("
        " select id from message where random() < 0.02 limit 5)) where outcome = 'cancelled'"
    )
    time.sleep(chance.random() * 0.02)
    connection.execute(chance.choice(["commit", "commit", "rollback"]))


def operate(connection: Session, chance: random.Random) -> None:
    """What operators do meanwhile."""
    what = chance.randrange(6)
    if what < 3:
        policy = chance.choice(
            [
                '{"is_paused": true}',
                '{"is_paused": false}',
                '{"weight": 3}',
                '{"max_concurrency": 2}',
                '{"max_concurrency": null}',
                '{"release_interval_ms": 10, "release_burst": 3}',
                '{"release_interval_ms": null}',
            ]
        )
        set_policy(connection, chance.choice(FICKLE), policy)
    elif what < 5:
        connection.execute("select channel_delete(%s)", [chance.choice(SHORT)])
    else:
        connection.execute("select dead_redrive_channel(%s, 3)", [chance.choice(PLAIN)])
