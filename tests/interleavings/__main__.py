"""Examine the interleavings of the queue's calls: `python -m tests.interleavings --only sleep --bound 2`."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg

from lonnymq.embedded import embedded
from tests import schema
from tests.interleavings.execution import NotReproducible
from tests.interleavings.laboratory import Laboratory
from tests.interleavings.mutants import MUTANTS, Mutant
from tests.interleavings.scenarios import SCENARIOS, Scenario, UnknownScenario, scenario
from tests.interleavings.search import Result, Search, describe


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    selected = [one for one in SCENARIOS.values() if all(part in one.name for part in options.only)]
    if not selected:
        sys.exit(f"no scenario's name contains {' and '.join(options.only)}; --list shows them all")
    if options.list:
        print(*(one.name for one in selected), sep="\n")
        return 0
    with laboratory(options.server) as found:
        if options.points:
            print(*(one.label for one in found.instrument.points), sep="\n")
            return 0
        if options.mutants:
            chosen = [one for name, one in MUTANTS.items() if options.mutant in (None, name)]
            return kill_all(found, chosen, options.bound)
        if options.mutant:
            found.change(MUTANTS[options.mutant].changes)
        if options.replay:
            return replay(found, *options.replay)
        return examine(found, selected, options)


@contextmanager
def laboratory(binaries: str) -> Iterator[Laboratory]:
    """A laboratory on a server of its own."""
    with embedded(fsync=False, binaries=binaries, settings={"max_connections": "20"}) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            schema.install(connection)
        found = Laboratory(server.dsn)
        yield found
        found.close()


def examine(found: Laboratory, selected: list[Scenario], options: argparse.Namespace) -> int:
    """Enumerate the schedules of each scenario; in the time that is left, draw others at random."""
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    total: Counter[str] = Counter()
    for one in selected:
        search = Search(found, one, not options.no_faults)
        report(one, search.enumerate(options.bound, until=until), total)
    rounds = 0
    while options.seconds and time.monotonic() < until:
        for one in selected:
            search = Search(found, one, not options.no_faults)
            slice_end = min(until, time.monotonic() + 5)
            report(one, search.wander(f"{options.seed} {rounds}", until=slice_end), total)
        rounds += 1
    print(f"\n{total['schedules']:,} schedules of {len(selected)} scenarios, {total['failed']} failed")
    return 1 if total["failed"] else 0


def report(examined: Scenario, result: Result, total: Counter[str]) -> None:
    if not result.schedules:
        return
    total["schedules"] += result.schedules
    total["failed"] += len(result.failed)
    schedules = f"{result.schedules:6}{' ' if result.is_complete else '+'} schedules"
    steps = result.steps / result.schedules
    print(
        f"{examined.name:<44} {schedules} of {steps:4.0f} steps, {len(result.outcomes):4} outcomes,"
        f" {result.schedules / result.seconds:5.1f}/s{', FAILED' if result.failed else ''}",
        flush=True,
    )
    for trace in result.failed[:1]:
        print(describe(examined, trace), flush=True)


def replay(found: Laboratory, name: str, schedule: str) -> int:
    try:
        search = Search(found, scenario(name))
        trace = search.replay(schedule)
    except (UnknownScenario, NotReproducible) as error:
        sys.exit(f"error: {error}")
    print(describe(search.scenario, trace))
    return 1 if trace.problems else 0


def kill_all(found: Laboratory, chosen: list[Mutant], bound: int) -> int:
    """Take away one rule at a time, and return 1 if one is not missed that should be."""
    survivors = 0
    for mutant in chosen:
        began = time.monotonic()
        if mutant.test:
            is_killed = mutant.fails_its_test()
            survivors += not is_killed
            verdict = "killed  " if is_killed else "SURVIVED"
            print(f"{verdict} {mutant.name}, by {mutant.test} ({time.monotonic() - began:.0f} s)", flush=True)
            continue
        killed = mutant.kill(found, 1 if mutant.survives else bound)
        seconds = f"{killed.schedules:5} schedules, {time.monotonic() - began:4.0f} s"
        if killed.trace is None:
            survivors += not mutant.survives
            print(f"SURVIVED {mutant.name}: {mutant.survives or 'nobody knows why'} ({seconds})", flush=True)
        else:
            problem = killed.trace.problems[0]
            print(f"killed   {mutant.name}, by {killed.scenario} ({seconds}): {problem}", flush=True)
            survivors += bool(mutant.survives)
    print(f"\n{len(chosen)} mutants, {survivors} with an unexpected result")
    return 1 if survivors else 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        default=[],
        help="scenarios whose name contains this; repeatable",
    )
    parser.add_argument(
        "--bound",
        type=number(0, 10),
        default=1,
        help="how many preemptions and faults a schedule may have (default: 1)",
    )
    parser.add_argument("--seconds", type=number(1, 1_000_000), help="draw random schedules until then")
    parser.add_argument("--seed", default="1", help="of the random schedules")
    parser.add_argument("--no-faults", action="store_true", help="neither roll back nor kill sessions")
    parser.add_argument("--server", choices=["system", "wheel"], default="wheel", help="which PostgreSQL")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--points", action="store_true", help="list the yield points")
    parser.add_argument(
        "--replay", nargs=2, metavar=("SCENARIO", "SCHEDULE"), help="run one schedule and show its steps"
    )
    parser.add_argument(
        "--mutants", action="store_true", help="prove that the search notices when a rule is missing"
    )
    parser.add_argument(
        "--mutant", choices=MUTANTS, metavar="NAME", help="only this one; without --mutants: examine it"
    )
    return parser.parse_args(arguments)


def number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"must be between {lowest} and {highest}, got {text}")
        return value

    return parse


if __name__ == "__main__":
    sys.exit(main())
