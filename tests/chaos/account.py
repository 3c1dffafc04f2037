"""The account: compares what producers were told with what became of each message."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.chaos.ledger import Entry, Event

# How many messages a problem lists.
MAX_LISTED = 5
# A lease gets its timestamp before its dequeue sees which leases have ended, so leases may overlap by
# as long as a dequeue takes on a busy machine.
MAX_OVERLAP_MS = 500
# The parts of a reason that differ between messages: numbers, and the ends of workers' names.
VARIABLE = re.compile(r"\b[0-9a-f]{16}\b|\d+")


class State(StrEnum):
    """Each message must be in exactly one of these states."""

    COMPLETED = "completed"
    BURIED = "buried"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    LEASED = "leased"


@dataclass(frozen=True)
class Observation:
    """A message found in the database, and its state; `reason` is why it was buried."""

    uid: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Attempt:
    """A lease from history, or a current one (`ended_at` is None); times in milliseconds."""

    uid: str
    channel: str
    leased_at: int
    ended_at: int | None


@dataclass(frozen=True)
class Evidence:
    """What the database contains at the end of a run."""

    observations: Sequence[Observation]
    attempts: Sequence[Attempt] = ()
    # One line per row of queue_check().
    invariants: Sequence[str] = ()
    # The highest number of leases per channel in any sample.
    max_leased: Mapping[str, int] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it to a file, one fact per line, to investigate a failure."""
        facts = [*self.observations, *self.attempts, *self.invariants]
        path.write_text("".join(f"{fact}\n" for fact in facts))


@dataclass(frozen=True)
class Rules:
    """What a scenario allows."""

    # Limit of concurrent leases by channel; checked in the samples and in history.
    caps: Mapping[str, int] = field(default_factory=dict)
    # False if the server's clock jumps: then history's times prove nothing.
    is_clock_steady: bool = True
    # Only messages whose payload asks for one of these actions may become dead letters.
    may_be_buried: frozenset[str] = frozenset({"bury"})
    # Messages acknowledged between these times may be lost: they were not replicated before the failover.
    tail: tuple[float, float] | None = None


@dataclass
class Account:
    """Counts to print, and problems, each of which fails the scenario."""

    outcomes: Counter[Event] = field(default_factory=Counter)
    states: Counter[State] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unsure_found: int = 0
    lost_tail: int = 0
    started: int = 0
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the lines to print."""
        outcomes = ", ".join(
            f"{self.outcomes[one]:,} {one}" for one in (Event.ACKNOWLEDGED, Event.UNSURE, Event.REFUSED)
        )
        states = ", ".join(f"{self.states[state]:,} {state}" for state in State)
        lines = [
            f"creates   {outcomes}",
            f"messages  {states}",
            f"unsure    {self.unsure_found:,} of {self.outcomes[Event.UNSURE]:,} unsure creates took effect",
            f"attempts  {self.started:,} started by workers",
        ]
        if self.lost_tail:
            lines.append(
                f"tail      {self.lost_tail:,} acknowledged messages lost with the unreplicated tail"
            )
        lines += [f"buried    {count:,} x {reason}" for reason, count in self.reasons.most_common(MAX_LISTED)]
        return lines + [f"PROBLEM   {problem}" for problem in self.problems]


def compare(creates: Iterable[Entry], handlers: Iterable[Entry], evidence: Evidence, rules: Rules) -> Account:
    """Compare the producers' and the workers' ledgers with the database."""
    account = Account()
    actions, outcomes, known_at = _create_outcomes(creates)
    ended = set()
    for entry in handlers:
        account.started += entry.event is Event.STARTED
        if entry.event is Event.ENDED:
            ended.add(entry.uid)
    account.outcomes.update(outcomes.values())
    found = defaultdict(list)
    for observation in evidence.observations:
        found[observation.uid].append(observation)
        account.states[observation.state] += 1
        if observation.state is State.BURIED:
            account.reasons[VARIABLE.sub("#", observation.reason)[:100]] += 1
    account.unsure_found = sum(outcomes.get(uid) is Event.UNSURE for uid in found)

    lost = [uid for uid, outcome in outcomes.items() if outcome is Event.ACKNOWLEDGED and uid not in found]
    if rules.tail is not None:
        first, last = rules.tail
        in_tail = {uid for uid in lost if first <= known_at[uid] <= last}
        account.lost_tail = len(in_tail)
        lost = [uid for uid in lost if uid not in in_tail]
    buried = [one for one in evidence.observations if one.state is State.BURIED]
    completed = [one.uid for one in evidence.observations if one.state is State.COMPLETED]
    kinds = {
        "acknowledged but lost": lost,
        "found although its create was refused": [uid for uid in found if outcomes.get(uid) is Event.REFUSED],
        "found although no producer tried to create it": [uid for uid in found if uid not in outcomes],
        "completed more than once": [uid for uid, times in Counter(completed).items() if times > 1],
        "in several states": [
            f"{uid} ({', '.join(sorted({one.state for one in places}))})"
            for uid, places in found.items()
            if len({one.state for one in places}) > 1
        ],
        "created more than once": [
            uid
            for uid, places in found.items()
            if len({one.state for one in places}) == 1 != len(places)
            and places[0].state is not State.COMPLETED
        ],
        "completed although no handler finished": [uid for uid in completed if uid not in ended],
        "buried although its payload does not ask for it": [
            f"{one.uid} ({one.reason})"
            for one in buried
            if actions.get(one.uid, "") not in rules.may_be_buried
        ],
        "buried without a reason": [one.uid for one in buried if not one.reason],
    }
    if rules.tail is None:
        # A server that lost its tail reuses message ids, so a cancellation by id may hit another message.
        kinds["cancelled although no producer cancelled it"] = [
            one.uid
            for one in evidence.observations
            if one.state is State.CANCELLED and actions.get(one.uid) != "cancel"
        ]
    account.problems += [_describe(kind, uids) for kind, uids in kinds.items() if uids]
    for channel, cap in rules.caps.items():
        if evidence.max_leased.get(channel, 0) > cap:
            leased = evidence.max_leased[channel]
            account.problems.append(f"channel {channel!r} was seen with {leased} leases; its limit is {cap}")
    if rules.is_clock_steady:
        account.problems += _exceeded_caps(evidence.attempts, rules.caps)
    account.problems += [f"queue_check(): {line}" for line in evidence.invariants[:MAX_LISTED]]
    return account


def _create_outcomes(creates: Iterable[Entry]) -> tuple[dict[str, str], dict[str, Event], dict[str, float]]:
    """Return by uid: the action in the payload, the outcome of the create, and when it was known.

    A create without an outcome is unsure: its producer was killed before it got the answer.
    """
    actions: dict[str, str] = {}
    outcomes: dict[str, Event] = {}
    known_at: dict[str, float] = {}
    for entry in creates:
        if entry.event is Event.TRIED:
            actions[entry.uid] = entry.do
            outcomes[entry.uid] = Event.UNSURE
        else:
            outcomes[entry.uid] = entry.event
            known_at[entry.uid] = entry.at
    return actions, outcomes, known_at


def _describe(kind: str, uids: Sequence[str]) -> str:
    more = f" and {len(uids) - MAX_LISTED:,} more" if len(uids) > MAX_LISTED else ""
    return f"{kind}: {', '.join(uids[:MAX_LISTED])}{more}"


def _exceeded_caps(attempts: Sequence[Attempt], caps: Mapping[str, int]) -> list[str]:
    """Count concurrent leases of capped channels by the times in history."""
    problems = []
    for channel, cap in caps.items():
        changes = []
        for one in attempts:
            if one.channel == channel:
                changes.append((one.leased_at, 1))
                if one.ended_at is not None:
                    changes.append((max(one.leased_at, one.ended_at - MAX_OVERLAP_MS), -1))
        leased = highest = at_highest = 0
        for at, change in sorted(changes):
            leased += change
            if leased > highest:
                highest, at_highest = leased, at
        if highest > cap:
            problems.append(
                f"in history, channel {channel!r} had {highest} leases at {at_highest} ms; its limit is {cap}"
            )
    return problems
