"""Two or three operations on a common state: all pairs, and the triples in which three sessions meet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

from tests.interleavings.operations import (
    DEQUEUE_TWICE,
    OPERATIONS,
    PART,
    Need,
    Operation,
    cancel,
    channel_set,
    create,
    dequeue,
    end,
    sleeper,
    work,
)
from tests.interleavings.rarer import RARER, RELATED, default_cap

CREATE = "select message_create('a', 'x')"
USE = (CREATE, "select interleavings.drain()")
LEASE = "select * from message_dequeue(1, p_worker => 'gone')"
BURY = """
    select message_bury(array[d.message_id], array[d.token]) from message_dequeue(1) d
"""
SERVE = """
    select message_complete(array[d.message_id], array[d.token]) from message_dequeue(1) d
"""
CLAIM = "select claim_take(null, 'consumer of the setup', true, 1, 30000)"
STAGE = f"""
    insert into stage (publication, part, ordinal, channel, contents)
    values ('p', '{PART}', 1, 'a', array['x', 'y']::bytea[])
"""
CRON = """
    select cron_set('c', '* * * * *', 'a', 'x', p_mark_at => lonnymq.clock_timestamp() - interval '10 s')
"""
KEYED = "select message_create('a', 'x', p_key => 'k')"
KEPT = """select message_create('a', 'x', p_headers => '{"lonnymq-keep-result-ms": "60000"}')"""
STREAM = (
    "insert into stream (role, name, last_batch, created, duplicates) values (session_user, 's', 0, 0, 0)"
)
HISTORY = """select queue_set('{"history": "metadata"}')"""
DEFAULT_CAP = """select queue_set('{"default_policy": {"max_concurrency": %s}}')"""
TENANT = "select queue_grant(interleavings.tenant_role(), 'tenant', '{a}')"
TENANT_CHANNEL = "insert into tenant_channel (name) values ('a')"
GONE = """
    insert into worker
      (name, pid, lock_id, registered_at, server_started_at, server_pids, gone_since, look_at)
    select 'gone', 0, 0, c.us - 3000000, pg_postmaster_start_time(), '{0}', c.us - 2000000, c.us - 1000000
    from (select (extract(epoch from lonnymq.clock_timestamp()) * 1000000)::bigint as us) c
"""
SCHEDULE = "select message_create('a', 'x', p_delay_ms => 1000)"
# The clock advances whenever it is read, so the message becomes due while the calls run.
ALMOST_DUE = "select setval('interleavings.clock_us', (select max(dequeue_at) * 1000 - 25 from message))"
EXPIRE = "select setval('interleavings.clock_us', nextval('interleavings.clock_us') + 60000000)"


@dataclass(frozen=True)
class Context:
    """The state of channel a before what the operations need is added."""

    name: str
    policy: str = ""
    # Whether the channel has been used before and so has a turn.
    is_used: bool = True
    # How many messages wait.
    waiting: int = 0
    leases: int = 1
    # Another message waits in channel b.
    has_other: bool = True
    # A message has been completed since the others were created, so that the turn is due without a wake.
    is_served: bool = False
    # max_concurrency of the default policy.
    default_cap: int | None = None
    # Two other new channels were noticed by the call that served this one, and wait to be served next.
    has_returning: bool = False


CONTEXTS = {
    one.name: one
    for one in (
        Context("plain", waiting=2),
        Context("capped", '{"max_concurrency": 1}', waiting=2),
        Context("capped-2", '{"max_concurrency": 2}', waiting=2, leases=2),
        Context("limited", '{"release_interval_ms": 1000}', waiting=2),
        Context("empty", '{"max_concurrency": 1}', has_other=False),
        Context("full", '{"max_concurrency": 1}', waiting=2, has_other=False),
        Context("alone", waiting=2, has_other=False),
        Context("due", waiting=3, has_other=False, is_served=True),
        Context("returning", waiting=2, is_used=False, has_other=False, is_served=True, has_returning=True),
        Context("new", is_used=False, has_other=False),
        Context("new-waiting", is_used=False, waiting=2),
        Context("default-capped", waiting=3, default_cap=1, has_other=False),
        Context("default-new", is_used=False, waiting=3, default_cap=1),
        Context("sized", '{"max_size": 3}', waiting=2, has_other=False),
        Context("paused", '{"is_paused": true}', waiting=2, has_other=False),
    )
}
# Where pairs are examined; a worker that is to fall asleep must find nothing. The others are for chosen
# scenarios.
COMMON = ("plain", "capped", "empty", "new-waiting")
SLEEPY = ("empty", "full")
HINTS = ("cold", "warm", "expensive")


# A claim, a publication, a stream and a key have one user at a time, and history is prepared by one call.
ONE_AT_A_TIME = ("claim_complete", "publish", "stream_publish", "create-key", "history_prepare", "default")
# So do these two.
ONE_OF_TWO = (
    {"claim_complete", "claim_messages"},
    {"create-key", "cancel_key"},
    {"default-2", "default-none"},
)


class UnknownScenario(Exception):
    """No scenario has this name."""


@dataclass(frozen=True)
class Scenario:
    """Operations that run concurrently, one per session."""

    operations: tuple[Operation, ...]
    context: Context
    # cold: the sessions have not dequeued before; warm: they have; expensive: and rely on their hints.
    hints: str = "cold"

    @property
    def name(self) -> str:
        parts = ["+".join(one.name for one in self.operations), self.context.name]
        return ",".join(parts if self.hints == "cold" else [*parts, self.hints])

    @property
    def needs(self) -> set[Need]:
        return {need for one in self.operations for need in one.needs}

    @property
    def is_possible(self) -> bool:
        """Whether the context can have what the operations need, and the hints make a difference."""
        if not self.context.is_used and self.needs & {Need.LEASE, Need.CLAIM, Need.DEAD, Need.KEY}:
            return False
        if Need.WAITING in self.needs and not self.context.waiting:
            return False
        return self.hints == "cold" or any(one.has_hints for one in self.operations)

    @property
    def has_waits(self) -> bool:
        return any(map(self.may_wait, range(len(self.operations))))

    def may_wait(self, session: int) -> bool:
        """Some calls wait for others of their kind, or for the end of a message with their key (rule 13)."""
        names = [one.name for one in self.operations]
        return (
            # Only the operator's call: the workers' one does not.
            (names[session] == "history_prepare" and "history_if_due" in names)
            or any(names.count(one) > 1 for one in ONE_AT_A_TIME)
            or any(two <= {*names} for two in ONE_OF_TWO)
            # Tenants wait for room in a channel whose size is limited.
            or self.context.name == "sized"
        )

    def setup(self) -> Iterator[str]:
        context, needs = self.context, self.needs
        create = KEPT if Need.RESULT in needs else CREATE
        if Need.HISTORY in needs:
            yield HISTORY
        if Need.TENANT in needs:
            yield TENANT
            yield TENANT_CHANNEL
        if context.is_used:
            yield from USE
        if Need.DEAD in needs:
            yield CREATE
            yield BURY
        if context.default_cap:
            yield DEFAULT_CAP % context.default_cap
        if context.policy:
            yield f"select channel_set('a', '{context.policy}')"
        keyed = [KEYED] if Need.KEY in needs else []
        for _ in range(context.leases if needs & {Need.LEASE, Need.CLAIM} else 0):
            yield keyed.pop() if keyed else create
            yield CLAIM if Need.CLAIM in needs else LEASE
        yield from [*keyed, *[create] * context.waiting]
        if context.has_returning:
            yield "select message_create('b', 'x'), message_create('c', 'x')"
        if context.is_served:
            yield SERVE
        if context.has_other:
            yield "select message_create('b', 'x')"
        if Need.STAGE in needs:
            yield STAGE
        if Need.STREAM in needs:
            yield STREAM
            yield STAGE.replace("'p'", "'stream s'")
        if Need.CRON in needs:
            yield CRON
        if Need.GONE in needs:
            yield GONE
        if Need.EXPIRED in needs:
            yield EXPIRE
        if Need.SCHEDULED in needs:
            yield SCHEDULE
            yield ALMOST_DUE


def scenario(name: str) -> Scenario:
    """Return any scenario by its name, such as "create+dequeue,plain,warm"."""
    operations, _, rest = name.partition(",")
    context, _, hints = rest.partition(",")
    unknown = [one for one in operations.split("+") if one not in ALL_OPERATIONS]
    if unknown or context not in CONTEXTS or (hints or "cold") not in HINTS:
        raise UnknownScenario(
            f"{name!r} is no scenario: it must be like 'create+dequeue,plain,warm'; see --list"
        )
    chosen_operations = tuple(ALL_OPERATIONS[one] for one in operations.split("+"))
    return Scenario(chosen_operations, CONTEXTS[context], hints or "cold")


def pairs() -> Iterator[Scenario]:
    for two in combinations_with_replacement(OPERATIONS.values(), 2):
        for context in SLEEPY if any(one.name == "sleep" for one in two) else COMMON:
            for hints in HINTS[:2]:
                yield Scenario(two, CONTEXTS[context], hints)


def rarer_pairs() -> Iterator[Scenario]:
    for two in combinations_with_replacement([*OPERATIONS.values(), *RARER.values()], 2):
        if {one.name for one in two} & {*RARER}:
            is_sleepy = any(one.name == "sleep" for one in two)
            for context in SLEEPY if is_sleepy else COMMON[:2]:
                yield Scenario(two, CONTEXTS[context])


ALL_OPERATIONS = {
    **OPERATIONS,
    **RARER,
    **RELATED,
    **{
        one.name: one
        for one in (
            end("complete", 1),
            create("b", name="create-b"),
            create(more=", p_dequeue_at => 0", name="create-urgent"),
            create(more=", p_key => 'k'", name="create-key"),
            channel_set("is_paused", True, "pause"),
            channel_set("is_paused", False, "resume"),
            channel_set("max_concurrency", 1, "channel_set-1"),
            dequeue(2, "dequeue-2"),
            cancel("{last[0]}", "cancel_last", Need.SCHEDULED),
            work(1),
            DEQUEUE_TWICE,
            default_cap(2, "default-2"),
            default_cap(None, "default-none"),
            # While a lease uses up the cap.
            default_cap(2, "default-raised", Need.LEASE),
            default_cap(None, "default-lifted", Need.LEASE),
            # Broken on purpose: see the mutants.
            sleeper(waits_for_horizon=False),
        )
    },
}
# Operations, contexts, and hints.
CHOSEN = (
    ("create+dequeue+dequeue", "plain capped empty new new-waiting", "cold warm"),
    ("create+dequeue", "alone", "cold warm expensive"),
    ("create+create+dequeue_many", "plain alone", "cold warm expensive"),
    ("dequeue+complete+dequeue", "capped capped-2", "cold warm"),
    ("cancel+dequeue+complete", "plain capped capped-2", "cold warm"),
    ("complete+complete-1", "capped-2", "cold"),
    ("create+dequeue", "empty new limited", "expensive warm"),
    ("dequeue+dequeue", "limited due", "cold warm"),
    ("dequeue+dequeue", "returning", "cold"),
    ("create+dequeue", "returning", "cold warm"),
    ("dequeue_many+dequeue_many", "returning", "cold"),
    ("dequeue-2+dequeue", "due", "cold warm"),
    ("create-urgent+dequeue", "due", "cold warm"),
    ("dequeue+complete", "full capped-2", "cold warm"),
    ("dequeue+cancel", "full due", "cold warm"),
    ("cancel+dequeue_many", "limited capped-2", "cold warm"),
    ("create-urgent+dequeue", "plain capped", "cold warm"),
    ("create-urgent+work", "plain", "warm"),
    ("create-key+create-key", "plain new", "cold"),
    ("create-key+channel_delete", "empty new", "cold"),
    ("pause+dequeue", "plain empty new", "cold warm"),
    ("resume+dequeue", "paused", "cold warm expensive"),
    ("resume+sleep", "paused", "cold"),
    ("channel_set-1+dequeue", "plain new-waiting", "cold warm"),
    ("channel_set-1+dequeue-2", "plain", "cold warm"),
    ("default+dequeue", "plain new-waiting", "cold warm"),
    ("default+dequeue-2", "plain", "cold warm"),
    ("channel_set+channel_set", "new", "cold"),
    ("channel_set+create+dequeue", "new", "cold"),
    ("channel_set-1+dequeue+dequeue", "new-waiting alone", "cold"),
    ("channel_delete+create+dequeue", "empty", "cold warm"),
    ("channel_delete+channel_set", "empty", "cold"),
    ("create+work", "plain empty", "cold warm"),
    ("work+work", "capped", "cold warm"),
    ("dequeue+dequeue-twice", "due alone new-waiting", "cold warm expensive"),
    ("run_now+dequeue_many", "alone due full limited paused", "cold warm expensive"),
    ("run_now+cancel_last", "alone", "cold"),
    ("run_now+work+dequeue", "alone", "cold warm"),
    ("run_now+cancel+dequeue_many", "alone capped-2", "cold"),
    ("run_now+resume+dequeue", "paused", "cold"),
    ("expire+complete+dequeue", "capped", "cold"),
    ("expire+cancel_leased+complete", "capped", "cold"),
    ("create-b+create+dequeue-2", "plain new-waiting", "cold warm"),
    ("create-key+cancel_key", "plain", "cold"),
    ("tenant_create+tenant_create", "sized", "cold"),
    ("tenant_create+tenant_redrive", "sized", "cold"),
    ("tenant_create+tenant_create+dequeue", "sized", "cold"),
    ("expire+complete_result", "plain capped", "cold"),
    ("expire+history_prepare", "plain", "cold"),
    ("complete+cancel_leased+history_if_due", "capped", "cold"),
    ("history_prepare+history_if_due+complete", "capped", "cold"),
    ("default+dequeue", "new", "cold warm"),
    ("default+dequeue_many", "new new-waiting", "cold"),
    ("default-2+dequeue", "default-capped default-new", "cold warm expensive"),
    ("default-2+dequeue_many", "default-capped default-new", "cold warm"),
    ("default-none+work", "default-capped default-new", "cold warm"),
    ("default-none+dequeue", "default-capped default-new", "cold warm"),
    ("default-raised+dequeue_many", "default-capped", "cold warm expensive"),
    ("default-lifted+dequeue", "default-capped", "cold warm"),
    ("default-lifted+complete", "default-capped", "cold"),
    ("default-2+default-none", "default-capped", "cold"),
    ("default-2+channel_set-1", "default-capped", "cold"),
    ("default-raised+sleep", "default-capped", "cold"),
    ("default-2+dequeue+dequeue", "default-capped default-new", "cold warm"),
    ("default-lifted+complete+dequeue", "default-capped", "cold"),
    ("create+dequeue+dequeue", "default-new", "cold"),
    ("dequeue+complete+dequeue", "default-capped", "cold warm"),
    ("channel_delete+create+dequeue", "default-capped", "cold"),
    ("repair+dequeue+complete", "capped", "cold"),
    ("repair+create+dequeue", "new", "cold"),
    ("redrive_channel+redrive_channel", "plain", "cold"),
    ("redrive_channel+redrive", "plain", "cold"),
    ("redrive_channel+purge", "plain", "cold"),
    ("redrive_channel+dequeue_many", "plain capped", "cold warm"),
    ("redrive_channel+sleep", "empty", "cold"),
    ("redrive_channel+channel_delete", "empty", "cold"),
    ("purge_channel+purge_channel", "plain", "cold"),
    ("purge_channel+redrive", "plain", "cold"),
    ("purge_channel+redrive_channel", "plain", "cold"),
    ("claim_messages+claim_complete", "plain capped", "cold"),
    ("claim_messages+claim_heartbeat", "plain", "cold"),
    ("claim_messages+claim_take", "plain", "cold"),
    ("claim_messages+cancel_leased", "capped", "cold"),
    ("claim_messages+complete", "capped", "cold"),
    ("cron_pause+cron_tick", "plain", "cold"),
    ("cron_delete+cron_tick", "plain", "cold"),
    ("cron_delete+cron_pause", "plain", "cold"),
    ("cron_set+cron_tick", "plain", "cold"),
    ("cron_set+cron_delete", "plain", "cold"),
    ("cron_set+cron_set", "plain", "cold"),
    ("queue_count+queue_count", "plain", "cold"),
    ("queue_count+dequeue_many", "capped", "cold"),
    ("tenant_create_many+tenant_create_many", "plain sized", "cold"),
    ("tenant_create_many+tenant_create", "sized", "cold"),
    ("tenant_create_many+dequeue_many", "plain new-waiting", "cold warm"),
    ("tenant_create_many+sleep", "empty", "cold"),
    ("tenant_create_many+tenant_create+dequeue", "sized", "cold"),
    ("tenant_cancel_key+cancel_key", "plain", "cold"),
    ("tenant_cancel_key+dequeue_many", "plain capped", "cold warm"),
    ("tenant_cancel_key+complete", "capped", "cold"),
    ("tenant_redrive_channel+tenant_redrive", "sized", "cold"),
    ("tenant_redrive_channel+redrive_channel", "plain", "cold"),
    ("tenant_redrive_channel+tenant_create", "sized", "cold"),
    ("tenant_redrive_channel+tenant_create_many", "sized", "cold"),
    ("watch+expire+heartbeat", "capped", "cold"),
    ("watch+dequeue+complete", "capped", "cold"),
)


def chosen() -> Iterator[Scenario]:
    for names, contexts, hints in CHOSEN:
        for context in contexts.split():
            for one in hints.split():
                yield scenario(",".join([names, context, one]))


def _unique(found: Iterable[Scenario]) -> dict[str, Scenario]:
    return {one.name: one for one in found if one.is_possible}


SCENARIOS = _unique([*pairs(), *rarer_pairs(), *chosen()])
