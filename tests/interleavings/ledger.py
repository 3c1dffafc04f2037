"""What committed replies have made of the queue, and whether its tables agree."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.interleavings.operations import Call, integer
from tests.interleavings.sessions import Row
from tests.interleavings.states import State
from tests.interleavings.views import Limits, View, tokens
from tests.properties.promises import DEAD, LEASED, WAITING, ChannelLimits, Message, Promises
from tests.races.sessions import Leased

ENDINGS = {"completed", "advanced", "deferred", "buried", "given_back"}


@dataclass
class Ledger:
    """The promises, as committed replies have made them, and what was wrong. `state` is what is committed."""

    state: State
    promises: Promises = field(default_factory=Promises)
    problems: list[str] = field(default_factory=list)
    done_once: set[str] = field(default_factory=set)
    # The leases that ended because a claim completed their messages.
    completed_by_claims: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for id_, (channel, at) in self.state.messages.items():
            self.promises.create([Message(id_, channel, at)])
        for id_, (channel, token, attempt, leased_at, _) in self.state.leases.items():
            self.promises.messages[id_].state = LEASED
            self.promises.leases[id_] = Leased(id_, channel, token, attempt, leased_at)
        for id_ in self.state.dead:
            self.promises.create([Message(id_, "a", 0, state=DEAD)])
        self.read_limits()
        self.history = Counter(self.state.history or ())
        self.results, self.kept = list(self.state.results), self.state.kept

    def report(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    # What replies mean.

    def apply(self, seen: View, rows: list[Row], open_views: Sequence[View]) -> None:
        """A call has committed. The views are those of the calls that have not."""
        self._release(
            seen, [integer(row, "message_id") or 0 for row in rows if row.get("outcome") == "leased"]
        )
        for row in rows:
            message, token = integer(row, "message_id") or 0, integer(row, "token") or 0
            match row.get("outcome"):
                case outcome if outcome in ENDINGS:
                    self._end(outcome, message, token, seen.call.result)
                case "created":
                    self._create(message)
                case "published" | "ticked" as outcome:
                    self._do_once(f"{seen.call.verb}: {outcome}")
                    self._create_unnamed(integer(row, "created") or 0)
                case "redriven":
                    self._redrive(message)
                case "purged":
                    self._purge(message)
                case "extended" if not self._holds(message, token):
                    self.report(f"fence: a lease of message {message} was extended that had ended")
                case "cancelled" if seen.call.verb == "cancel":
                    self._cancel(message, open_views)
                case "cancelled" if seen.call.verb != "heartbeat":
                    self._end_cancelled(message, open_views)
                case "due":
                    self._run_now(message)
                case "set":
                    self._expect_policy(seen.call)
        if seen.call.verb == "claim_complete":
            self._complete_claim(seen.call, open_views)

    def _create(self, message: int) -> None:
        found = self.state.messages.get(message)
        if found is None:
            self.report(f"message {message} should wait, and is not there")
        else:
            self.promises.create([Message(message, *found)])

    def _do_once(self, outcome: str) -> None:
        """All sessions publish the same load, and decide the same tick."""
        if outcome in self.done_once:
            self.report(f"{outcome} a second time")
        self.done_once.add(outcome)

    def _create_unnamed(self, count: int) -> None:
        """The reply only says how many messages it created."""
        for message in sorted(set(self.state.messages) - set(self.promises.messages))[:count]:
            self._create(message)

    def _redrive(self, message: int) -> None:
        if self.promises.messages[message].state != DEAD:
            self.report(f"message {message} was redriven, and was no dead letter")
        self._create(message)

    def _purge(self, message: int) -> None:
        if self.promises.messages.pop(message).state != DEAD:
            self.report(f"message {message} was purged, and was no dead letter")

    def _end(self, outcome: str | None, message: int, token: int, result: str | None = None) -> None:
        if not self._holds(message, token):
            self.report(f"fence: message {message} was {outcome} with a lease that had ended")
            return
        del self.promises.leases[message]
        if outcome != "given_back":
            self.history[message, "completed" if outcome == "advanced" else str(outcome)] += 1
        if outcome == "completed":
            del self.promises.messages[message]
            if result is not None and message in self.kept:
                self.results.append((message, "completed", result))
        elif outcome == "buried":
            self.promises.messages[message].state = DEAD
        else:
            self._create(message)

    def _end_cancelled(self, message: int, open_views: Sequence[View]) -> None:
        """The lease of a cancelled message ends now, unless an open transaction is ending it."""
        if message not in self.state.leases or not open_views:
            self.promises.orphans.pop(message, None)

    def _complete_claim(self, call: Call, open_views: Sequence[View]) -> None:
        for message, token in call.leases:
            if message not in self.state.leases and self._holds(message, token):
                self._end("completed", message, token)
                self.completed_by_claims.add((message, token))
                if message in self.kept:
                    self.results.append((message, "completed", None))
            self._end_cancelled(message, open_views)

    def _cancel(self, message: int, open_views: Sequence[View]) -> None:
        if self.promises.messages.pop(message, None) is None:
            self.report(f"message {message} was cancelled, and was not there")
        self.history[message, "cancelled"] += 1
        if message in self.kept:
            self.results.append((message, "cancelled", None))
        if leased := self.promises.leases.pop(message, None):
            self.promises.orphans[message] = leased
        for one in open_views:
            one.cancelled.add(message)

    def _run_now(self, message: int) -> None:
        """A message has another time from now on, unless it has ended in the meantime."""
        found = self.state.messages.get(message)
        if found and message in self.promises.messages:
            self.promises.messages[message].dequeue_at = found[1]
            if found[1] * 1000 > self.state.now_us:
                self.report(f"message {message} is not due, although run_now said so")

    def _expect_policy(self, call: Call) -> None:
        max_concurrency, _, is_paused = self.state.limits.get("a", (None, None, None))
        found = {"max_concurrency": max_concurrency, "is_paused": is_paused}
        if any(found[name] != value for name, value in call.policy.items()):
            self.report(f"the policy {call.policy} was set, and is {found}")

    def lose_expired(self, before: State) -> None:
        """Dequeue ends expired leases: their messages wait again, unless they were cancelled."""
        for id_, (_, token, _, _, unlock_at) in before.leases.items():
            if tokens(self.state).get(id_) != token and unlock_at <= self.state.now_us:
                self.promises.orphans.pop(id_, None)
                if self.promises.leases.pop(id_, None):
                    self.promises.messages[id_].state = WAITING
                    self.history[id_, "expired"] += 1

    def _release(self, seen: View, ids: list[int]) -> None:
        leased = [Leased(id_, *self.state.leases[id_][:4]) for id_ in ids if id_ in self.state.leases]
        for one in leased:
            message = self.promises.messages.get(one.id)
            if message is not None and message.state == WAITING:
                message.state = LEASED
                self.promises.leases[one.id] = one
            elif message is None and one.id in seen.cancelled:
                # Its worker learns this when it acknowledges the message (rule 7).
                self.promises.orphans[one.id] = one
            else:
                self.report(f"message {one.id} was leased, and was {message.state if message else 'gone'}")
        for channel in {one.channel for one in leased}:
            self._judge_release(seen, channel, [one for one in leased if one.channel == channel])

    # What must be true.

    def _judge_release(self, seen: View, channel: str, leased: list[Leased]) -> None:
        """Messages are released in order, and within cap, interval and pause, as they were at some time."""
        order = [(self.state.messages[one.id][1], one.id) for one in leased if one.id in self.state.messages]
        if order != sorted(order):
            self.report(f"messages of channel {channel} were released in this order: {order}")
        due = {id_: at for id_, (name, at) in seen.due.items() if name == channel and id_ in self._waiting()}
        if passed := [id_ for id_, at in due.items() if order and (at, id_) < order[-1]]:
            self.report(f"messages {passed} of channel {channel} were due, and later ones were released")
        limits = seen.limits_of(channel)
        if all(one.is_paused for one in limits):
            self.report(f"{leased} were released during a pause")
        count, caps = self.promises.lease_count(channel), [one.max_concurrency for one in limits]
        if all(isinstance(cap, int) and cap < count for cap in caps):
            self.report(f"channel {channel} has {count} leases, may have {caps}")
        self._judge_intervals(channel, leased, min(one.interval_ms or 0 for one in limits))

    def _judge_intervals(self, channel: str, leased: list[Leased], interval_ms: int) -> None:
        limits = self.promises.limits(channel)
        for at in sorted(one.leased_at for one in leased):
            if limits.last_at and at - limits.last_at < interval_ms * 1000:
                self.report(
                    f"channel {channel} has releases at {limits.last_at} and {at}, {interval_ms} ms apart"
                )
            limits.last_at = at

    def compare(self) -> None:
        """Every message is exactly one of waiting, leased, buried or gone, and has at most its own lease."""
        messages = self.promises.messages.values()
        held = [*self.promises.leases.values(), *self.promises.orphans.values()]
        expected: dict[str, set[Any]] = {
            "live messages": {one.id for one in messages if one.state != DEAD},
            "dead letters": {one.id for one in messages if one.state == DEAD},
            "leases": {(one.id, one.token) for one in held},
        }
        found: dict[str, set[Any]] = {
            "live messages": set(self.state.messages),
            "dead letters": self.state.dead,
            "leases": set(tokens(self.state).items()),
        }
        for name, wanted in expected.items():
            if found[name] != wanted:
                self.report(f"{name} are {sorted(found[name])}, should be {sorted(wanted)}")
        for channel, size in self.state.sizes.items():
            if len(waiting := self.promises.messages_of(channel, WAITING)) > size:
                self.report(f"{len(waiting)} messages wait in channel {channel}, which may have {size}")
        if self.state.history is not None and self.state.history != self.history:
            self.report(f"recorded are {self.state.history}, should be {self.history}")
        if sorted(self.state.results) != sorted(self.results):
            self.report(f"the results are {self.state.results}, should be {self.results}")

    # What is known.

    def _holds(self, message: int, token: int) -> bool:
        return message in self.promises.leases and self.promises.leases[message].token == token

    def _waiting(self) -> set[int]:
        return {one.id for one in self.promises.messages.values() if one.state == WAITING}

    def ready(self, state: State) -> set[int]:
        """Return the messages that a dequeue could lease now."""
        channels = self.promises.channels_ready(state.now_us // 1000, state.now_us)
        waiting = [one for channel in channels for one in self.promises.messages_of(channel, WAITING)]
        return {one.id for one in waiting if one.dequeue_at * 1000 <= state.now_us}

    def limits(self) -> Limits:
        found = self.promises.limits_by_channel.items()
        return {
            name: ChannelLimits(one.max_concurrency, one.interval_ms, one.is_paused) for name, one in found
        }

    def read_limits(self) -> None:
        for name in {*self.state.limits, *self.promises.limits_by_channel}:
            limits = self.promises.limits(name)
            limits.max_concurrency, limits.interval_ms, limits.is_paused = self.state.limits.get(
                name, (None, None, False)
            )
