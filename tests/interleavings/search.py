"""Enumerates the schedules of a scenario up to a number of interventions, or draws them at random."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile

from tests.interleavings.execution import Execution, NotReproducible, Step, Trace
from tests.interleavings.instrument import Point
from tests.interleavings.laboratory import Laboratory
from tests.interleavings.scenarios import Scenario


@dataclass
class Result:
    """What a search has found."""

    schedules: int = 0
    steps: int = 0
    seconds: float = 0
    is_complete: bool = True
    # Different combinations of replies.
    outcomes: set[tuple[str, ...]] = field(default_factory=set)
    failed: list[Trace] = field(default_factory=list)

    def add(self, trace: Trace) -> None:
        self.schedules += 1
        self.steps += len(trace.steps)
        self.outcomes.add(tuple(trace.replies))
        if trace.problems:
            self.failed.append(trace)


@dataclass(frozen=True)
class Alternative:
    """A schedule to run. `later` is the one that preempts the same session one step later, after `point`."""

    schedule: str
    later: str | None = None
    point: Point | None = None


@dataclass
class Search:
    """A search through the schedules of one scenario."""

    laboratory: Laboratory
    scenario: Scenario
    # Whether sessions are also rolled back and killed.
    has_faults: bool = True

    def __post_init__(self) -> None:
        # By schedule, see changed_by_preemption().
        self._changed: dict[str, frozenset[str] | None] = {}
        states = self.laboratory.states
        self.facts = states.build(list(self.scenario.setup()), self.scenario.hints)
        self.state = states.read()

    def run(self, choose: Callable[[Step], str]) -> Trace:
        return Execution(self.laboratory, self.scenario, self.facts, self.state, self.has_faults).run(choose)

    def replay(self, schedule: str) -> Trace:
        """Run the decisions of a schedule, and then go on without preemptions."""
        for _ in range(2):
            # Something outside of the schedule can delay a session, and so change its path. This is rare.
            with suppress(NotReproducible):
                return self._replay(schedule)
        return self._replay(schedule)

    def _replay(self, schedule: str) -> Trace:
        decisions = iter(schedule.split(",") if schedule else [])
        return self.run(lambda step: next(decisions, None) or without_preemption(step))

    def enumerate(self, bound: int, *, until: float = float("inf"), stop_at: int = 1) -> Result:
        """Run every schedule with at most so many interventions: preemptions, rollbacks and kills."""
        result, began = Result(), time.monotonic()
        self._changed.clear()
        todo = [Alternative("")]
        while todo:
            if time.monotonic() > until or len(result.failed) >= stop_at:
                result.is_complete = False
                break
            one = todo.pop()
            if self._is_redundant(one):
                continue
            trace = self.replay(one.schedule)
            result.add(trace)
            decided = one.schedule.count(",") + bool(one.schedule)
            self._changed[one.schedule] = changed_by_preemption(trace, decided)
            todo += alternatives(trace, decided, bound)
        result.seconds = time.monotonic() - began
        return result

    def _is_redundant(self, one: Alternative) -> bool:
        """Whether the schedule that preempts one step later has the same effect, and has been run.

        It has, if the step uses no table that the other session changes before it is preempted itself.
        """
        changed = self._changed.get(one.later or "")
        if self.scenario.has_waits or one.point is None or changed is None or one.point.used & changed:
            return False
        self._changed[one.schedule] = changed
        return True

    def wander(self, seed: str, *, until: float, stop_at: int = 1) -> Result:
        """Run random schedules, with any number of preemptions."""
        result, began = Result(is_complete=False), time.monotonic()
        while time.monotonic() < until and len(result.failed) < stop_at:
            chance = random.Random(f"{seed} {result.schedules}")
            result.add(self.run(lambda step, chance=chance: at_random(step, chance)))  # type: ignore[misc]
        result.seconds = time.monotonic() - began
        return result


def alternatives(trace: Trace, decided: int, bound: int) -> list[Alternative]:
    """Return the schedules that differ from this one in one decision, after those already decided."""
    found = []
    decisions = [step.decision for step in trace.steps]
    interventions = 0
    for place, step in enumerate(trace.steps):
        for other in step.possible if place >= decided else []:
            changed = Step(other, step.possible, step.current)
            if other != step.decision and interventions + changed.is_intervention <= bound:
                later = None
                following = trace.steps[place + 1 : place + 2]
                if changed.is_preemption and following and following[0].decision == step.decision:
                    later = ",".join([*decisions[: place + 1], other])
                found.append(Alternative(",".join([*decisions[:place], other]), later, step.point))
        interventions += step.is_intervention
    return found


def changed_by_preemption(trace: Trace, decided: int) -> frozenset[str] | None:
    """Return the tables that the session of the last decision has changed when another one runs again.

    Returns None if that is not known.
    """
    if not decided or trace.problems or trace.steps[decided - 1].is_fault:
        return None
    session = trace.steps[decided - 1].session
    later = takewhile(lambda step: step.session == session, trace.steps[decided - 1 :])
    steps = [*(step for step in trace.steps[: decided - 1] if step.session == session), *later]
    return frozenset[str]().union(*(step.changed for step in steps))


def without_preemption(step: Step) -> str:
    return str(step.current) if str(step.current) in step.possible else step.possible[0]


def at_random(step: Step, chance: random.Random) -> str:
    if str(step.current) in step.possible and chance.random() < 0.7:
        return str(step.current)
    has_fault = chance.random() < 0.05
    return chance.choice([one for one in step.possible if has_fault or len(one) == 1])


def describe(scenario: Scenario, trace: Trace) -> str:
    """Return the steps of a schedule, what was replied, what was wrong, and the command that repeats it."""
    lines = []
    for number, step in enumerate(trace.steps):
        mark = "*" if step.is_preemption else "!" if step.is_fault else " "
        lines.append(f"  {mark}{number:3} session {step.decision[0]}: {step.where}")
    lines += ["  replies:", *(f"    {one}" for one in trace.replies)]
    lines += ["  problems:", *(f"    {one}" for one in trace.problems)]
    command = f".venv/bin/python -m tests.interleavings --replay '{scenario.name}' {trace.schedule}"
    return "\n".join([f"{scenario.name}:", *lines, f"  to repeat: {command}"])
