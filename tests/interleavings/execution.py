"""Runs one schedule of a scenario: decides at each yield point which session goes on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from tests.interleavings.account import Account
from tests.interleavings.actors import Actor
from tests.interleavings.instrument import Point
from tests.interleavings.laboratory import Laboratory
from tests.interleavings.ledger import Ledger
from tests.interleavings.scenarios import Scenario
from tests.interleavings.states import Facts, State

# How long a session must wait for a lock of another one until that counts as waiting. By design,
# message_complete may wait for 2 ms.
WAIT_S = 0.1
# A statement that takes this long has found a mistake in this tester.
HANG_S = 120


class NotReproducible(Exception):
    """A decision is not possible where the schedule makes it."""


@dataclass
class Step:
    """A decision: a session goes on ("0"), or rolls back ("0r") or is killed ("0k") there."""

    decision: str
    possible: list[str]
    # The session that ran before.
    current: int | None
    where: str = ""
    # The yield point that the step begins with; None if it begins a call or ends a transaction.
    point: Point | None = None
    # The shared tables that the step writes or locks.
    changed: frozenset[str] = frozenset()

    @property
    def session(self) -> int:
        return int(self.decision[0])

    @property
    def is_preemption(self) -> bool:
        """Whether the session that ran before could have gone on."""
        return str(self.current) in self.possible and self.session != self.current

    @property
    def is_fault(self) -> bool:
        return len(self.decision) > 1

    @property
    def is_intervention(self) -> bool:
        """Whether this counts towards the bound of a search."""
        return self.is_preemption or self.is_fault


@dataclass
class Trace:
    """What happened in a schedule."""

    steps: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)

    @property
    def schedule(self) -> str:
        return ",".join(step.decision for step in self.steps)


# Chooses a decision among the possible ones.
Choice = Callable[[Step], str]


@dataclass
class Execution:
    """One schedule of a scenario whose state was built."""

    laboratory: Laboratory
    scenario: Scenario
    facts: Facts
    state: State
    has_faults: bool
    trace: Trace = field(default_factory=Trace)

    def run(self, choose: Choice) -> Trace:
        operations = self.scenario.operations
        sessions = self.laboratory.begin(len(operations))
        self.account = Account(self.laboratory.states.read, Ledger(self.state))
        programs = [one.start(self.facts, number) for number, one in enumerate(operations)]
        self.actors = [Actor(*two, self.account) for two in zip(sessions, programs, strict=True)]
        current: int | None = None
        while possible := self._possible(current):
            step = Step("", possible, current)
            step.decision = choose(step)
            if step.decision not in possible:
                self._abandon()
                raise NotReproducible(f"{self.trace.schedule},{step.decision}: possible is only {possible}")
            self.trace.steps.append(step)
            current = step.session
            self._take(step, self.actors[current])
        self._finish()
        return self.trace

    def _possible(self, current: int | None) -> list[str]:
        """Return the decisions that are possible now; nothing if all sessions have finished."""
        ready = [one for one in self.actors if not one.is_done and not one.is_blocked]
        blocked = [one for one in self.actors if one.is_blocked]
        if not ready and blocked:
            # The server detects the deadlock and ends one of the transactions.
            self.trace.problems.append("deadlock")
            self._look_again(blocked, within_s=10)
            return self._possible(current)
        found = [str(one.number) for one in ready]
        if self.has_faults:
            found += [f"{one.number}r" for one in ready if one.is_at_end]
            # If no other session has run since its last step, it might as well be killed before that.
            found += [f"{one.number}k" for one in ready if one.is_busy and one.number != current]
        return found

    def _take(self, step: Step, actor: Actor) -> None:
        at, instrument = actor.session.point, self.laboratory.instrument
        step.point = None if at is None else instrument.points[at]
        if step.decision.endswith("k"):
            step.where = actor.kill(step.point)
            self.laboratory.replace(actor.session)
        else:
            step.where = actor.roll_back() if step.decision.endswith("r") else actor.go_on(step.point)
            step.changed = step.point.changed if step.point else instrument.tables(step.where)[1]
            self._wait(actor, step.where)
        self._look_again([one for one in self.actors if one.is_blocked and one is not actor])

    def _wait(self, actor: Actor, where: str) -> None:
        """Wait until the session stops, or waits for another one."""
        began = time.monotonic()
        while not actor.session.has_stopped(0.01):
            if time.monotonic() - began > WAIT_S and self._is_held_up(actor):
                actor.is_blocked = True
                if not self.scenario.may_wait(actor.number):
                    self.account.report(f"session {actor.number} waits in {where}")
                return
            if time.monotonic() - began > HANG_S:
                raise TimeoutError(f"session {actor.number} hangs in {where} after {self.trace.schedule}")
        if not actor.session.is_running:
            actor.finish_step()

    def _look_again(self, blocked: list[Actor], within_s: float = 0) -> None:
        """Let sessions that the last step has released run to their next stop."""
        until = time.monotonic() + within_s
        while blocked := [one for one in blocked if one.is_blocked]:
            for actor in blocked:
                if actor.session.has_stopped(0.002):
                    actor.is_blocked = False
                    if not actor.session.is_running:
                        actor.finish_step()
            if time.monotonic() >= until and all(self._is_held_up(one) for one in blocked if one.is_blocked):
                return

    def _is_held_up(self, actor: Actor) -> bool:
        """Whether another session has what this one waits for, unlike the controller at a yield point."""
        return bool(actor.session.blockers() & {one.session.pid for one in self.actors})

    def _abandon(self) -> None:
        """End the sessions where they are."""
        for actor in self.actors:
            if not actor.is_killed:
                actor.session.kill()
                self.laboratory.replace(actor.session)

    def _finish(self) -> None:
        """Check what is left, and drain it."""
        for actor in self.actors:
            self.trace.replies += actor.replies
            if actor.is_asleep and not actor.session.notifications():
                self.account.judge_sleep(actor.number)
        try:
            row = self.laboratory.control.execute("select * from interleavings.finish()").fetchone()
        except psycopg.Error as error:
            self.account.report(f"at the end: {str(error).splitlines()[0]}")
        else:
            assert row is not None
            problems, drained = row
            self.account.judge_drained(drained)
            self.trace.problems += problems
        self.trace.problems += self.account.ledger.problems
