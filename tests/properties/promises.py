"""The promises of the queue, as small as they can be said: not how it works, only what may be observed."""

from dataclasses import dataclass, field

from tests.races.sessions import Leased

WAITING, LEASED, DEAD = "waiting", "leased", "dead"


@dataclass
class Message:
    """A committed message that has neither been completed nor cancelled nor purged."""

    id: int
    channel: str
    dequeue_at: int
    max_attempts: int | None = None
    state: str = WAITING
    # Attempts that it must have spent; a loss alone may also have spent earlier ones.
    spent: int = 0

    def spend(self, is_buried: bool) -> None:
        """It is buried at its last attempt at the latest, and never without a limit."""
        self.spent += 1
        assert is_buried or self.max_attempts is None or self.spent < self.max_attempts, f"{self} lives on"
        assert self.max_attempts is not None or not is_buried, f"{self} is buried"
        self.state = DEAD if is_buried else WAITING


@dataclass
class Policy:
    max_concurrency: int | None = None
    interval_ms: int | None = None
    is_paused: bool = False
    # On the database's clock: since this interval was set, and the last ever, which a new one may count.
    released_at: list[int] = field(default_factory=list)
    last_at: int = 0

    def changed(self, max_concurrency: int | None, interval_ms: int | None) -> "Policy":
        kept = self.released_at if interval_ms == self.interval_ms else []
        return Policy(max_concurrency, interval_ms, self.is_paused, kept, self.last_at)


@dataclass
class Promises:
    """What must be true of a queue after what has been committed."""

    messages: dict[int, Message] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    # The lease that may end a message, and leases of messages that were cancelled meanwhile; tokens of leases
    # whose holder works other messages in the same process.
    leases: dict[int, Leased] = field(default_factory=dict)
    orphans: dict[int, Leased] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)

    def policy(self, channel: str) -> Policy:
        return self.policies.setdefault(channel, Policy())

    def of(self, channel: str, state: str) -> list[Message]:
        """In the order of release."""
        found = [one for one in self.messages.values() if (one.channel, one.state) == (channel, state)]
        return sorted(found, key=lambda one: (one.dequeue_at, one.id))

    def leased_of(self, channel: str) -> int:
        return sum(one.channel == channel for one in [*self.leases.values(), *self.orphans.values()])

    def create(self, messages: list[Message]) -> None:
        self.messages |= {one.id: one for one in messages}

    def release(self, leased: list[Leased], now_ms: int) -> None:
        """Each message once; in order; within cap, interval and pause; nothing before its time."""
        for channel in {one.channel for one in leased}:
            given = [one for one in leased if one.channel == channel]
            due = [one.id for one in self.of(channel, WAITING) if one.dequeue_at <= now_ms]
            assert [one.id for one in given] == due[: len(given)], f"{given} released, {due} were due"
            policy = self.policy(channel)
            assert not policy.is_paused, f"{given} released during a pause"
            if policy.max_concurrency is not None:
                count = self.leased_of(channel) + len(given)
                assert count <= policy.max_concurrency, f"{count} leased under {policy}"
            policy.last_at = max(one.leased_at for one in given)
            if policy.interval_ms is not None:
                policy.released_at += [one.leased_at for one in given]
                for earlier, later in zip(policy.released_at, policy.released_at[1:], strict=False):
                    assert later - earlier >= policy.interval_ms * 1000, f"too close: {policy}"
        for one in leased:
            self.messages[one.id].state = LEASED
            self.leases[one.id] = one

    def unrelease(self, leased: list[Leased]) -> None:
        for one in leased:
            self.orphans.pop(one.id, None)
            if self.leases.pop(one.id, None):
                self.messages[one.id].state = WAITING
            released_at = self.policy(one.channel).released_at
            if one.leased_at in released_at:
                released_at.remove(one.leased_at)

    def lose_all(self, dead: set[int]) -> None:
        """No message is buried for a lease lost in company, unless one attempt is all that it may have."""
        for one in self.leases.values():
            message = self.messages[one.id]
            if one.token not in self.shared or message.max_attempts == 1:
                message.spend(one.id in dead)
            else:
                assert one.id not in dead, f"{message} is buried for what another may have done"
                message.state = WAITING
        self.leases.clear()
        self.orphans.clear()

    def must_give(self, now_ms: int, now_us: int) -> set[str]:
        """Channels of which a message could be released now."""
        ready = set()
        for channel in {one.channel for one in self.messages.values()}:
            policy = self.policy(channel)
            is_due = any(one.dequeue_at <= now_ms for one in self.of(channel, WAITING))
            is_full = policy.max_concurrency is not None and self.leased_of(channel) >= policy.max_concurrency
            is_early = policy.last_at + (policy.interval_ms or 0) * 1000 > now_us
            if is_due and not (is_full or is_early or policy.is_paused):
                ready.add(channel)
        return ready

    def answer(self, leased: Leased, done: str) -> str:
        """What acknowledging under that token must say."""
        if self.orphans.get(leased.id) == leased:
            return "cancelled"
        return done if self.leases.get(leased.id) == leased else "lease_lost"
