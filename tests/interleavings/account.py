"""Judges a schedule: a commit changes what its calls replied, and keeps the promises of tests/properties."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.interleavings.ledger import Ledger
from tests.interleavings.operations import Call, integer
from tests.interleavings.sessions import Row
from tests.interleavings.states import State
from tests.interleavings.views import View, view
from tests.properties.promises import DEAD

DEQUEUING = {"dequeue", "claim_take"}
# A dequeue may say 'empty' although a message is ready if it asks its caller to return this soon.
SOON_MS = 200


@dataclass
class Account:
    """What the sessions' calls have said. `read` reads what is committed now."""

    read: Callable[[], State]
    ledger: Ledger
    # By session: its current call, and the calls of its transaction that have replied.
    current: dict[int, View] = field(default_factory=dict)
    replied: dict[int, list[tuple[View, list[Row]]]] = field(default_factory=dict)

    def report(self, problem: str) -> None:
        self.ledger.report(problem)

    def begin(self, session: int, call: Call) -> None:
        state = self.read()
        others = [one for number, one in self.current.items() if number != session]
        is_alone = not others and not any(calls for n, calls in self.replied.items() if n != session)
        for one in others:
            one.is_alone = False
        self.current[session] = view(call, self.ledger.ready(state), state, self.ledger.limits(), is_alone)

    def reply(self, session: int, rows: list[Row]) -> None:
        """A call has ended: judge what it says of what was true all the time."""
        seen = self.current.pop(session)
        verb = seen.call.verb
        self.replied.setdefault(session, []).append((seen, rows))
        for row in rows:
            message, outcome = integer(row, "message_id") or 0, row.get("outcome")
            if outcome == "lease_lost" and seen.tokens.get(message, 0) == integer(row, "token"):
                self.report(f"{verb} said lease_lost, although the lease of {message} was held")
            elif outcome == "unknown" and (message or seen.call.keyed) in (
                seen.messages if verb in ("cancel", "run_now") else seen.dead
            ):
                self.report(f"{verb} said unknown, although message {message} was there")
            elif (lost := integer(row, "lost") or 0) > sum(
                (seen.tokens.get(one) != token or one not in seen.messages)
                # A lease that ended in another way was lost to the claim, even if its message was completed.
                and (one, token) not in self.ledger.completed_by_claims
                for one, token in seen.call.leases
            ):
                self.report(f"{verb} said that {lost} leases were lost, although they were held")
            elif verb == "repair":
                self.report(f"queue_check(true) said {row}")
        if verb in DEQUEUING and not any(row.get("outcome") == "leased" for row in rows):
            self._judge_nothing(seen, rows[0])

    def commit(self, session: int) -> None:
        """A transaction has committed: its replies are now facts, and nothing else may have changed."""
        before, self.ledger.state = self.ledger.state, self.read()
        for seen, rows in self.replied.pop(session, []):
            if seen.call.verb in DEQUEUING:
                self.ledger.lose_expired(before)
            self.ledger.apply(seen, rows, self._open_views())
        self.ledger.compare()
        self.ledger.read_limits()
        for one in self._open_views():
            one.narrow(self.ledger.ready(self.ledger.state), self.ledger.state, self.ledger.limits())

    def roll_back(self, session: int) -> None:
        self.current.pop(session, None)
        self.replied.pop(session, None)

    def judge_sleep(self, session: int) -> None:
        """A worker sleeps at the end, and was not notified."""
        if ready := self.ledger.ready(self.read()):
            self.report(f"session {session} sleeps without a notification, although {ready} are ready")

    def judge_drained(self, drained: Sequence[int]) -> None:
        alive = sorted(one.id for one in self.ledger.promises.messages.values() if one.state != DEAD)
        if sorted(drained) != alive:
            self.report(f"messages {sorted(drained)} came out, should be {alive}")

    def _judge_nothing(self, seen: View, row: Row) -> None:
        """A dequeue says 'empty' if nothing was ready, and 'busy' if other transactions were open."""
        wait_ms = integer(row, "wait_ms")
        is_busy = row.get("outcome") == "busy" or wait_ms == 0
        if is_busy and seen.is_alone:
            self.report("dequeue said 'busy' although no other transaction was open")
        elif not is_busy and seen.ready and (wait_ms is None or wait_ms > SOON_MS):
            self.report(
                f"dequeue said 'empty' for {wait_ms} ms, although {seen.ready} were ready all the time"
            )

    def _open_views(self) -> list[View]:
        """Return the views of the calls that have not committed."""
        return [*self.current.values(), *(seen for calls in self.replied.values() for seen, _ in calls)]
