"""The account: what producers were promised, against what became of each message."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.chaos.ledger import Entry, Event

# How many messages a problem names.
SHOWN = 5
# A lease is stamped before its dequeue has seen what ended meanwhile, so intervals may overlap by as long as
# a dequeue takes on a busy machine.
SLACK_MS = 500


class State(StrEnum):
    """Every message is in one of these, and in one only."""

    COMPLETED = "completed"
    BURIED = "buried"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    LEASED = "leased"


@dataclass(frozen=True)
class Sighting:
    """A place in the database where a message was found; `reason` is that of a dead letter."""

    uid: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Attempt:
    """A lease from history, or one that is still held (`ended_at` is None); milliseconds."""

    uid: str
    channel: str
    leased_at: int
    ended_at: int | None


@dataclass(frozen=True)
class Evidence:
    """What the database says at the end of a run."""

    sightings: Sequence[Sighting]
    attempts: Sequence[Attempt] = ()
    # One line per row of queue_check().
    invariants: Sequence[str] = ()
    # The most leases that a channel was seen to hold in one snapshot.
    most_held: Mapping[str, int] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it down, one fact per line, for whoever looks into a failure."""
        facts = [*self.sightings, *self.attempts, *self.invariants]
        path.write_text("".join(f"{fact}\n" for fact in facts))


@dataclass(frozen=True)
class Rules:
    """What a scenario allows."""

    # Limits on concurrent leases, by channel; compared with samples, and with the times in history.
    caps: Mapping[str, int] = field(default_factory=dict)
    # Times of a clock that jumps say nothing.
    is_clock_steady: bool = True
    # Messages whose payload asks for one of these may end as dead letters, no others.
    may_be_buried: frozenset[str] = frozenset({"bury"})
    # Acknowledged between these two moments, a message may be lost: the tail of an asynchronous failover.
    tail: tuple[float, float] | None = None


@dataclass
class Account:
    """Counts for the reader, and problems: each fails the scenario."""

    claims: Counter[Event] = field(default_factory=Counter)
    states: Counter[State] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unsure_found: int = 0
    lost_tail: int = 0
    started: int = 0
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the account as it is printed."""
        claims = ", ".join(
            f"{self.claims[one]:,} {one}" for one in (Event.ACKNOWLEDGED, Event.UNSURE, Event.REFUSED)
        )
        states = ", ".join(f"{self.states[state]:,} {state}" for state in State)
        lines = [
            f"creates   {claims}",
            f"messages  {states}",
            f"unsure    {self.unsure_found:,} of {self.claims[Event.UNSURE]:,} unsure creates took effect",
            f"attempts  {self.started:,} started by workers",
        ]
        if self.lost_tail:
            lines.append(
                f"tail      {self.lost_tail:,} acknowledged messages lost with the unreplicated tail"
            )
        lines += [f"buried    {count:,} x {reason}" for reason, count in self.reasons.most_common(SHOWN)]
        return lines + [f"PROBLEM   {problem}" for problem in self.problems]


def judge(made: Iterable[Entry], worked: Iterable[Entry], evidence: Evidence, rules: Rules) -> Account:
    """Compare the producers' and the workers' ledgers with the database."""
    account = Account()
    wishes, claims, known_at = _claims(made)
    ended = set()
    for entry in worked:
        account.started += entry.event is Event.STARTED
        if entry.event is Event.ENDED:
            ended.add(entry.uid)
    account.claims.update(claims.values())
    found = defaultdict(list)
    for sighting in evidence.sightings:
        found[sighting.uid].append(sighting)
        account.states[sighting.state] += 1
        if sighting.state is State.BURIED:
            account.reasons[re.sub(r"\d+", "#", sighting.reason)[:100]] += 1
    account.unsure_found = sum(claims.get(uid) is Event.UNSURE for uid in found)

    lost = [uid for uid, claim in claims.items() if claim is Event.ACKNOWLEDGED and uid not in found]
    if rules.tail is not None:
        first, last = rules.tail
        in_tail = {uid for uid in lost if first <= known_at[uid] <= last}
        account.lost_tail = len(in_tail)
        lost = [uid for uid in lost if uid not in in_tail]
    buried = [one for one in evidence.sightings if one.state is State.BURIED]
    completed = [one.uid for one in evidence.sightings if one.state is State.COMPLETED]
    kinds = {
        "acknowledged, and lost": lost,
        "found although its create failed without effect": [
            uid for uid in found if claims.get(uid) is Event.REFUSED
        ],
        "found although no producer tried to create it": [uid for uid in found if uid not in claims],
        "completed more than once": [uid for uid, times in Counter(completed).items() if times > 1],
        "in several states at once": [
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
        "completed although no handler reached its end": [uid for uid in completed if uid not in ended],
        "buried although it did no harm": [
            f"{one.uid} ({one.reason})"
            for one in buried
            if wishes.get(one.uid, "") not in rules.may_be_buried
        ],
        "buried without a reason": [one.uid for one in buried if not one.reason],
    }
    if rules.tail is None:
        # A server that lost its tail issues ids again: a cancellation by id may hit another message.
        kinds["cancelled although nobody asked for it"] = [
            one.uid
            for one in evidence.sightings
            if one.state is State.CANCELLED and wishes.get(one.uid) != "cancel"
        ]
    account.problems += [_described(kind, uids) for kind, uids in kinds.items() if uids]
    for channel, cap in rules.caps.items():
        if evidence.most_held.get(channel, 0) > cap:
            held = evidence.most_held[channel]
            account.problems.append(f"channel {channel!r} was seen with {held} leases, its limit is {cap}")
    if rules.is_clock_steady:
        account.problems += _broken_caps(evidence.attempts, rules.caps)
    account.problems += [f"queue_check(): {line}" for line in evidence.invariants[:SHOWN]]
    return account


def _claims(made: Iterable[Entry]) -> tuple[dict[str, str], dict[str, Event], dict[str, float]]:
    """Return, by uid: what its payload asks for, how its create ended, and when that was known.

    A create that was tried and has no outcome is unsure: its producer was killed in the middle.
    """
    wishes: dict[str, str] = {}
    claims: dict[str, Event] = {}
    known_at: dict[str, float] = {}
    for entry in made:
        if entry.event is Event.TRIED:
            wishes[entry.uid] = entry.do
            claims[entry.uid] = Event.UNSURE
        else:
            claims[entry.uid] = entry.event
            known_at[entry.uid] = entry.at
    return wishes, claims, known_at


def _described(kind: str, uids: Sequence[str]) -> str:
    more = f" and {len(uids) - SHOWN:,} more" if len(uids) > SHOWN else ""
    return f"{kind}: {', '.join(uids[:SHOWN])}{more}"


def _broken_caps(attempts: Sequence[Attempt], caps: Mapping[str, int]) -> list[str]:
    """Sweep over each capped channel's leases, as history times them."""
    problems = []
    for channel, cap in caps.items():
        changes = []
        for one in attempts:
            if one.channel == channel:
                changes.append((one.leased_at, 1))
                if one.ended_at is not None:
                    changes.append((max(one.leased_at, one.ended_at - SLACK_MS), -1))
        held = highest = at_highest = 0
        for at, change in sorted(changes):
            held += change
            if held > highest:
                highest, at_highest = held, at
        if highest > cap:
            problems.append(
                f"by history channel {channel!r} had {highest} leases at {at_highest} ms, its limit is {cap}"
            )
    return problems
