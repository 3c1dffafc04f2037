"""The roles of the mixed race: producers, workers that behave in every way, cancellers and operators.

Messages created and ended are recorded in the transaction that does it, so that a rollback or a kill also
reverts the record.
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
CHANGING = ["changing 0", "changing 1"]
DELETED = ["deleted 0", "deleted 1", "deleted 2"]
CAP, INTERVAL_MS, LEASE_MS = 2, 30, 600

RECORDS = """
    create table created (id bigint);
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
    owner.execute(RECORDS)
    owner.execute("set search_path = lonnymq")
    for channel in CAPPED:
        set_policy(owner, channel, f'{{"max_concurrency": {CAP}}}')
    for channel in LIMITED:
        set_policy(owner, channel, f'{{"release_interval_ms": {INTERVAL_MS}}}')
    for channel in CHANGING:
        set_policy(owner, channel, '{"max_attempts": 3}')


def set_policy(owner: Session, channel: str, policy: str) -> None:
    owner.execute("select channel_set(%s, %s)", [channel, policy])


def produce_mixed(load: Load) -> None:
    """Run ten producers concurrently, each with its own session."""
    threads = [threading.Thread(target=produce_one, args=[load, load.seed * 100 + n]) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def produce_one(load: Load, seed: int) -> None:
    rng = random.Random(seed)
    with session(load.dsn) as connection:
        while time.time() < load.until:
            connection.execute("begin")
            for _ in range(rng.randrange(1, 4)):
                create_any(connection, rng)
            if rng.random() < 0.1:
                time.sleep(1 + rng.random())
            connection.execute("rollback" if rng.random() < 0.1 else "commit")
            time.sleep(rng.random() * 0.02)


def create_any(connection: Session, rng: random.Random) -> None:
    """Create messages due now or later, with or without priority and key; few in rate-limited channels."""
    channel = rng.choice(
        PLAIN * 3 + CAPPED * 2 + CHANGING + DELETED + (LIMITED if rng.random() < 0.3 else [])
    )
    count = 1 if channel in LIMITED else rng.choice([1, 1, 5])
    now = int(time.time() * 1000)
    ats = [rng.choice([None, now + rng.randrange(500), rng.randrange(-5, 1)]) for _ in range(count)]
    # Calls with the same key wait for each other, so each producer has keys of its own to avoid deadlocks.
    keys = [f"{id(connection)} {rng.randrange(50)}" if rng.random() < 0.2 else None for _ in range(count)]
    connection.execute(
        "insert into public.created select message_id from"
        " message_create_many(%s::text[], %s::bytea[], p_dequeue_ats => %s::bigint[], p_keys => %s::text[])"
        " where outcome = 'created'",
        [[channel] * count, [b"x"] * count, ats, keys],
    )


def work_mixed(load: Load) -> None:
    """Behave in every way a worker can, until the end; reconnect after a lost connection."""
    rng = random.Random(load.seed)
    while time.time() < load.until:
        try:
            with session(load.dsn, application_name="victim") as connection:
                while time.time() < load.until:
                    behave(connection, rng, load.batch)
        except psycopg.OperationalError:
            pass


def behave(connection: Session, rng: random.Random, batch: int) -> None:
    behaviour = rng.choices(
        ["complete", "defer", "bury", "give_back", "heartbeat", "abandon", "roll back", "stall"],
        [60, 10, 3, 5, 5, 5, 7, 5],
    )[0]
    connection.execute("begin")
    leased = ask(connection, rng.randrange(1, batch), lease_ms=LEASE_MS).leased
    if behaviour == "stall":
        time.sleep(rng.random() * 0.1)
    connection.execute("rollback" if behaviour == "roll back" else "commit")
    if not leased or behaviour in ("abandon", "roll back"):
        return
    if behaviour == "heartbeat":
        keep = "select count(*) from message_heartbeat(%s::bigint[], %s::bigint[], %s)"
        connection.execute(keep, [[one.id for one in leased], [one.token for one in leased], LEASE_MS])
    if behaviour in ("defer", "bury", "give_back"):
        end(connection, behaviour, leased)
    else:
        connection.execute("begin")
        complete_and_record(connection, leased)
        time.sleep(rng.choice([0, 0, 0.01]))
        connection.execute(rng.choices(["commit", "rollback"], [9, 1])[0])


def complete_and_record(connection: Session, leased: list[Leased]) -> None:
    connection.execute(
        "insert into public.ended select message_id, outcome"
        " from message_complete(%s::bigint[], %s::bigint[]) where outcome = 'completed'",
        [[one.id for one in leased], [one.token for one in leased]],
    )


def cancel_some(connection: Session, rng: random.Random) -> None:
    connection.execute("begin")
    connection.execute(
        "insert into public.ended select message_id, outcome from message_cancel(array("
        " select id from message where random() < 0.02 limit 5)) where outcome = 'cancelled'"
    )
    time.sleep(rng.random() * 0.02)
    connection.execute(rng.choice(["commit", "commit", "rollback"]))


def operate(connection: Session, rng: random.Random) -> None:
    """Change policies, delete channels and redrive dead letters."""
    number = rng.randrange(6)
    if number < 3:
        policy = rng.choice(
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
        set_policy(connection, rng.choice(CHANGING), policy)
    elif number < 5:
        connection.execute("select channel_delete(%s)", [rng.choice(DELETED)])
    else:
        connection.execute("select dead_redrive_channel(%s, 3)", [rng.choice(PLAIN)])
