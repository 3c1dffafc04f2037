"""Make trouble and count: `python -m tests.chaos --only failover --seconds 30 --seed 7`."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tests.chaos.run import Run, Scenario, Skip, TimeIsUp, deadline, deaf_to_signals
from tests.chaos.scenarios import SCENARIOS

# What a scenario may take beyond its own seconds: starting, draining, stopping.
OVERHEAD_S = 300.0
OK, FAILED, SKIPPED, INTERRUPTED = "ok", "FAILED", "skipped", "interrupted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenarios one after another, and return 1 if any of them failed."""
    options = parsed(arguments)
    chosen = chosen_scenarios(options.only)
    if options.list:
        for one in chosen:
            print(f"{one.name:<22} {one.seconds:3.0f} s  {one.summary}")
        return 0
    signal.signal(signal.SIGTERM, interrupt)
    # A shell that runs this in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(2), "big")
    results: dict[str, str] = {}
    began = time.monotonic()
    for scenario in chosen:
        results[scenario.name] = play(scenario, options.seconds or scenario.seconds, seed)
        if results[scenario.name] == INTERRUPTED:
            break
    print(f"\nseed {seed}, {time.monotonic() - began:.0f} s")
    for name, result in results.items():
        print(f"  {result:<11} {name}")
    if INTERRUPTED in results.values():
        return 130
    return 1 if FAILED in results.values() else 0


def play(scenario: Scenario, seconds: float, seed: int) -> str:
    """Run one scenario, clean up whatever happens, print its account, and return its result."""
    print(f"\n{scenario.name}: {scenario.summary} ({seconds:g} s, seed {seed})", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="lonnymq-chaos-"))
    # Servers run as another user if this is root, and must be able to get in.
    directory.chmod(0o755)
    result = FAILED
    run = Run(scenario.name, seconds, seed, directory, ExitStack())
    try:
        with deadline(seconds + OVERHEAD_S, f"{scenario.name} to finish"):
            account = scenario.play(run)
        for line in account.lines():
            print(f"  {line}")
        result = FAILED if account.problems else OK
    except Skip as reason:
        print(f"  {reason}")
        result = SKIPPED
    except KeyboardInterrupt:
        print("  interrupted, cleaning up")
        result = INTERRUPTED
    except (Exception, TimeIsUp):  # noqa: BLE001 - the other scenarios are still to be run
        traceback.print_exc(file=sys.stdout)
    finally:
        with deaf_to_signals():
            clean_up(run.cleanup)
    if result == FAILED:
        again = f'make chaos CHAOS_ARGS="--only {scenario.name} --seconds {seconds:g} --seed {seed}"'
        print(f"  FAILED with seed {seed}; ledgers and logs are in {directory}\n  again: {again}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
        print(f"  {result}", flush=True)
    return result


def clean_up(cleanup: ExitStack) -> None:
    """Undo everything; a step that fails keeps none of the others from being taken."""
    try:
        cleanup.close()
    except Exception:  # noqa: BLE001 - the result of the run counts, and what failed is printed
        traceback.print_exc(file=sys.stdout)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="scenarios whose name contains this")
    parser.add_argument("--seconds", type=positive, help="how long each scenario makes trouble")
    parser.add_argument("--seed", type=int, help="repeat the choices of an earlier run")
    parser.add_argument("--list", action="store_true", help="list the scenarios, and run none")
    return parser.parse_args(arguments)


def positive(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"must be between 1 and 86400 seconds, got {text}")
    return seconds


def chosen_scenarios(parts: Sequence[str] | None) -> list[Scenario]:
    chosen = [one for one in SCENARIOS if not parts or any(part in one.name for part in parts)]
    if not chosen:
        names = ", ".join(one.name for one in SCENARIOS)
        sys.exit(f"no scenario's name contains {' or '.join(map(repr, parts or []))}; there are: {names}")
    return chosen


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
