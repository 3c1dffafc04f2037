"""The calls that are examined, and what they need of the state in which they begin."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum

from tests.interleavings.sessions import Row
from tests.interleavings.states import Facts


@dataclass(frozen=True)
class Call:
    """One call, which runs in the session's transaction."""

    verb: str
    sql: str
    # The policy that channel_set sets, the leases of the claim that is named, the message of the key that is
    # named, and the result that is given.
    policy: dict[str, int | bool] = field(default_factory=dict)
    leases: tuple[tuple[int, int], ...] = ()
    keyed: int = 0
    result: str | None = None


class Signal(Enum):
    """What a program can do besides calling."""

    COMMIT = "commit"
    # The worker is asleep: only a notification wakes it.
    SLEEP = "sleep"


# What a session does: it receives the rows of each call. It may end without a commit, which then follows.
Program = Generator[Call | Signal, list[Row], None]


class Need(Enum):
    """What an operation needs of the state in which it begins."""

    LEASE = "lease"
    CLAIM = "claim"
    WAITING = "waiting"
    DEAD = "dead"
    STAGE = "stage"
    CRON = "cron"
    # A message becomes due in a moment.
    SCHEDULED = "scheduled"
    # All leases have expired.
    EXPIRED = "expired"
    # The load of a stream.
    STREAM = "stream"
    # The first leased message, or one that waits, has the key k.
    KEY = "key"
    # The producers of all messages want their results to be kept.
    RESULT = "result"
    # Attempts are recorded, and there is no partition yet.
    HISTORY = "history"
    # A role is the tenant of channel a.
    TENANT = "tenant"
    # The worker that holds the leases has been gone for so long that they are due to end.
    GONE = "gone"


@dataclass(frozen=True)
class Operation:
    """`start` receives the facts of the state and the number of the session."""

    name: str
    start: Callable[[Facts, int], Program]
    needs: frozenset[Need] = frozenset()
    # The session's hints can make a difference.
    has_hints: bool = False


def call(verb: str, sql: str, *needs: Need, has_hints: bool = False, name: str = "") -> Operation:
    """An operation of a single call. `sql` may refer to the facts, as in {waiting[0]}."""

    def start(facts: Facts, session: int) -> Program:
        yield Call(verb, sql.format(**vars(facts), session=session))

    return Operation(name or verb, start, frozenset(needs), has_hints)


def create(channel: str = "a", more: str = "", name: str = "create") -> Operation:
    sql = f"select outcome, message_id from message_create('{channel}', 'x'{more})"
    return call("create", sql, name=name)


def dequeue(limit: int, name: str = "dequeue", *needs: Need) -> Operation:
    return call("dequeue", dequeue_sql(limit), *needs, has_hints=True, name=name)


def dequeue_sql(limit: int) -> str:
    return f"select outcome, message_id, token, wait_ms from message_dequeue({limit})"


def end_sql(verb: str, message: int | str, token: int | str) -> str:
    return (
        f"select outcome, message_id, {token} as token"
        f" from message_{verb}(array[{message}::bigint], array[{token}::bigint])"
    )


def end(verb: str, lease: int = 0) -> Operation:
    sql = end_sql(verb, f"{{leases[{lease}][0]}}", f"{{leases[{lease}][1]}}")
    return call(verb, sql, Need.LEASE, name=verb if lease == 0 else f"{verb}-{lease}")


def cancel(target: str, name: str, *needs: Need) -> Operation:
    return call(
        "cancel", f"select outcome, message_id from message_cancel(array[{target}])", *needs, name=name
    )


# A lease that the call leaves alone is not a release.
RUN_NOW = """
    select case outcome when 'leased' then 'held' else outcome end as outcome, message_id
    from message_run_now(array[{last[0]}])
"""


def channel_set(field_name: str, value: int | bool, name: str = "channel_set") -> Operation:
    text = str(value).lower()

    def start(facts: Facts, session: int) -> Program:
        sql = f"""select channel_set('a', '{{"{field_name}": {text}}}') as outcome"""
        yield Call("channel_set", sql, policy={field_name: value})

    return Operation(name, start)


def work(limit: int) -> Operation:
    """Dequeue and complete, in two transactions."""

    def start(facts: Facts, session: int) -> Program:
        rows = yield Call("dequeue", dequeue_sql(limit))
        yield Signal.COMMIT
        for row in rows:
            if row["outcome"] == "leased":
                yield Call("complete", end_sql("complete", str(row["message_id"]), str(row["token"])))

    return Operation("work", start, has_hints=True)


def _dequeue_twice(facts: Facts, session: int) -> Program:
    """The second call uses the hints that the first one left."""
    yield Call("dequeue", dequeue_sql(1))
    yield Signal.COMMIT
    yield Call("dequeue", dequeue_sql(1))


DEQUEUE_TWICE = Operation("dequeue-twice", _dequeue_twice, has_hints=True)


def _claim_take(facts: Facts, session: int) -> Program:
    consumer = f"consumer {session}"
    yield Call(
        "claim_take",
        f"select claim, messages, wait_ms from claim_take(null, '{consumer}', true, 2, 30000);"
        " select 'leased' as outcome, u.id as message_id, u.token"
        " from claim c cross join unnest(c.message_ids, c.tokens) u(id, token)"
        f" where c.consumer = '{consumer}'",
    )


def _claim_complete(facts: Facts, session: int) -> Program:
    sql = f"select outcome, lost from claim_complete('{facts.claim}')"
    yield Call("claim_complete", sql, leases=tuple(facts.leases))


def integer(row: Row, name: str) -> int | None:
    value = row.get(name)
    return None if value is None else int(value)


def sleeper(*, waits_for_horizon: bool = True) -> Operation:
    """A worker that falls asleep as documented: it registers, and asks until the horizon has passed."""

    def start(facts: Facts, session: int) -> Program:
        yield Call("listen", f'listen "{facts.event}"')
        yield Signal.COMMIT
        yield Call("register", f"select sleeper_register('worker {session}', 60000)")
        yield Signal.COMMIT
        newest = integer((yield Call("horizon", "select newest from queue_horizon()"))[0], "newest") or 0
        yield Signal.COMMIT
        # It would ask again and again; that it is still asking after three rounds is a good end.
        for _ in range(3):
            oldest = integer((yield Call("horizon", "select oldest from queue_horizon()"))[0], "oldest") or 0
            yield Signal.COMMIT
            rows = yield Call("dequeue", dequeue_sql(5))
            yield Signal.COMMIT
            if rows[0]["outcome"] == "leased":
                return
            has_passed = oldest >= newest or not waits_for_horizon
            if has_passed and rows[0]["outcome"] == "empty" and int(rows[0]["wait_ms"] or 60_000) > 1000:
                yield Signal.SLEEP
                return

    return Operation("sleep" if waits_for_horizon else "sleep-at-once", start, has_hints=True)


CREATE_MANY = """
    select outcome, message_id
    from message_create_many('{{a, a, b}}'::text[], array['x', 'y', 'z']::bytea[])
"""
PART = "00000000-0000-0000-0000-000000000001"
PUBLISH = f"select outcome, created from message_publish('p', array['{PART}'::uuid], '{{{{2}}}}')"
CRON_TICK = """
    select outcome, created
    from cron_tick('c', '{cron_mark}', '{cron_mark}'::timestamptz + interval '2 s',
      array['{cron_mark}'::timestamptz + interval '1 s'], '{cron_mark}'::timestamptz + interval '1 hour')
"""
# All that change or read messages, one of each: every two of them are examined together.
OPERATIONS = {
    one.name: one
    for one in (
        create(),
        call("create", CREATE_MANY, name="create_many"),
        call("publish", PUBLISH, Need.STAGE),
        dequeue(1),
        dequeue(5, "dequeue_many"),
        dequeue(5, "expire", Need.LEASE, Need.EXPIRED),
        *map(end, ("complete", "advance", "defer", "bury", "give_back", "heartbeat")),
        cancel("{waiting[0]}", "cancel", Need.WAITING),
        cancel("{leases[0][0]}", "cancel_leased", Need.LEASE),
        call("run_now", RUN_NOW, Need.SCHEDULED),
        call("redrive", "select outcome, message_id from dead_redrive(array[{dead[0]}])", Need.DEAD),
        channel_set("max_concurrency", 2),
        call("channel_delete", "select channel_delete('a') as outcome"),
        Operation("claim_take", _claim_take, has_hints=True),
        Operation("claim_complete", _claim_complete, frozenset({Need.CLAIM})),
        call("cron_tick", CRON_TICK, Need.CRON),
        sleeper(),
    )
}
