"""What the account knows of a call that has not committed yet: what was true all the time since it began."""

from dataclasses import dataclass, field

from tests.interleavings.operations import Call
from tests.interleavings.states import State
from tests.properties.promises import ChannelLimits

Limits = dict[str, ChannelLimits]


@dataclass
class View:
    """A call and what was true all the time since it began, as far as committed."""

    call: Call
    # Messages that a dequeue could lease.
    ready: set[int]
    # Channel and dequeue_at of the messages that were due and not leased.
    due: dict[int, tuple[str, int]]
    messages: set[int]
    # The tokens of leases, by message.
    tokens: dict[int, int]
    dead: set[int]
    # All limits that have applied in the meantime.
    limits: list[Limits]
    # No other session has had a transaction open.
    is_alone: bool
    # Messages that have been cancelled in the meantime.
    cancelled: set[int] = field(default_factory=set)

    def narrow(self, ready: set[int], state: State, limits: Limits) -> None:
        """Drop what a commit has made untrue."""
        self.ready &= ready
        self.due = {id_: one for id_, one in self.due.items() if due_messages(state).get(id_) == one}
        self.messages &= set(state.messages)
        self.tokens = {id_: token for id_, token in self.tokens.items() if tokens(state).get(id_) == token}
        self.dead &= state.dead
        self.limits.append(limits)

    def limits_of(self, channel: str) -> list[ChannelLimits]:
        return [one.get(channel, ChannelLimits()) for one in self.limits]


def view(call: Call, ready: set[int], state: State, limits: Limits, is_alone: bool) -> View:
    """Return what is true when a call begins."""
    return View(
        call,
        ready,
        due_messages(state),
        set(state.messages),
        tokens(state),
        set(state.dead),
        [limits],
        is_alone,
    )


def due_messages(state: State) -> dict[int, tuple[str, int]]:
    return {
        id_: one
        for id_, one in state.messages.items()
        if one[1] * 1000 <= state.now_us and id_ not in state.leases
    }


def tokens(state: State) -> dict[int, int]:
    return {id_: lease[1] for id_, lease in state.leases.items()}
