"""A minimal model of the queue's promises: not how it works, only what can be observed."""

from dataclasses import dataclass, field

from tests.races.sessions import Leased

WAITING, LEASED, DEAD = "waiting", "leased", "dead"


@dataclass
class Message:
    """A committed message that was not completed, cancelled or purged."""

    id: int
    channel: str
    dequeue_at: int
    max_attempts: int | None = None
    state: str = WAITING
    # The attempts that it has spent at least: a loss alone may also have spent earlier ones.
    spent: int = 0

    def spend(self, is_buried: bool) -> None:
        """It must be buried at its last attempt at the latest, and never without max_attempts."""
        self.spent += 1
        assert is_buried or self.max_attempts is None or self.spent < self.max_attempts, (
            f"{self} was not buried"
        )
        assert self.max_attempts is not None or not is_buried, f"{self} was buried"
        self.state = DEAD if is_buried else WAITING

    def renew(self) -> None:
        """It goes on with its next step, with all its attempts."""
        self.spent = 0


@dataclass
class ChannelLimits:
    # None: the queue's default applies; "none": lifted.
    max_concurrency: int | str | None = None
    interval_ms: int | None = None
    is_paused: bool = False
    # By the database's clock: releases since this interval was set, and the last one of all.
    released_at: list[int] = field(default_factory=list)
    last_at: int = 0

    def with_changes(self, max_concurrency: int | str | None, interval_ms: int | None) -> "ChannelLimits":
        released_at = self.released_at if interval_ms == self.interval_ms else []
        return ChannelLimits(max_concurrency, interval_ms, self.is_paused, released_at, self.last_at)


@dataclass
class Promises:
    """What must be true of a queue after the committed calls."""

    messages: dict[int, Message] = field(default_factory=dict)
    limits_by_channel: dict[str, ChannelLimits] = field(default_factory=dict)
    default_cap: int | None = None
    # Current leases by message, leases of messages that were cancelled meanwhile, and the tokens of shared
    # leases.
    leases: dict[int, Leased] = field(default_factory=dict)
    orphans: dict[int, Leased] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)

    def limits(self, channel: str) -> ChannelLimits:
        return self.limits_by_channel.setdefault(channel, ChannelLimits())

    def cap(self, channel: str) -> int | None:
        own = self.limits(channel).max_concurrency
        return self.default_cap if own is None else own if isinstance(own, int) else None

    def messages_of(self, channel: str, state: str) -> list[Message]:
        """Return messages in the order of their release."""
        found = [one for one in self.messages.values() if (one.channel, one.state) == (channel, state)]
        return sorted(found, key=lambda one: (one.dequeue_at, one.id))

    def lease_count(self, channel: str) -> int:
        return sum(one.channel == channel for one in [*self.leases.values(), *self.orphans.values()])

    def create(self, messages: list[Message]) -> None:
        self.messages |= {one.id: one for one in messages}

    def release(self, leased: list[Leased], now_ms: int) -> None:
        """Check that messages are released once, in order, when due, and within cap, interval and pause."""
        for channel in {one.channel for one in leased}:
            given = [one for one in leased if one.channel == channel]
            due = [one.id for one in self.messages_of(channel, WAITING) if one.dequeue_at <= now_ms]
            assert [one.id for one in given] == due[: len(given)], f"{given} released, {due} were due"
            limits = self.limits(channel)
            assert not limits.is_paused, f"{given} released during a pause"
            cap = self.cap(channel)
            if cap is not None:
                count = self.lease_count(channel) + len(given)
                assert count <= cap, f"{count} leased under a cap of {cap}"
            limits.last_at = max(one.leased_at for one in given)
            if limits.interval_ms is not None:
                limits.released_at += [one.leased_at for one in given]
                for earlier, later in zip(limits.released_at, limits.released_at[1:], strict=False):
                    assert later - earlier >= limits.interval_ms * 1000, f"too close: {limits}"
        for one in leased:
            self.messages[one.id].state = LEASED
            self.leases[one.id] = one

    def revert_release(self, leased: list[Leased]) -> None:
        for one in leased:
            self.orphans.pop(one.id, None)
            if self.leases.pop(one.id, None):
                self.messages[one.id].state = WAITING
            released_at = self.limits(one.channel).released_at
            if one.leased_at in released_at:
                released_at.remove(one.leased_at)

    def lose_all(self, dead: set[int]) -> None:
        """No message is buried because a shared lease was lost, unless its max_attempts is 1."""
        for one in self.leases.values():
            message = self.messages[one.id]
            if one.token not in self.shared or message.max_attempts == 1:
                message.spend(one.id in dead)
            else:
                assert one.id not in dead, f"{message} was buried although another message may be to blame"
                message.state = WAITING
        self.leases.clear()
        self.orphans.clear()

    def channels_ready(self, now_ms: int, now_us: int) -> set[str]:
        """Return the channels of which a message must be released now."""
        ready = set()
        for channel in {one.channel for one in self.messages.values()}:
            limits = self.limits(channel)
            is_due = any(one.dequeue_at <= now_ms for one in self.messages_of(channel, WAITING))
            cap = self.cap(channel)
            is_full = cap is not None and self.lease_count(channel) >= cap
            is_early = limits.last_at + (limits.interval_ms or 0) * 1000 > now_us
            if is_due and not (is_full or is_early or limits.is_paused):
                ready.add(channel)
        return ready

    def expected_outcome(self, leased: Leased, done: str) -> str:
        """Return the outcome that an acknowledgement with that token must have."""
        if self.orphans.get(leased.id) == leased:
            return "cancelled"
        return done if self.leases.get(leased.id) == leased else "lease_lost"
