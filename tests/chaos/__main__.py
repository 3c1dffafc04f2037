"""Inject faults under load, then account for every message: `python -m tests.chaos --only soak --seed 7`."""

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

from tests.chaos.run import DeadlineExceeded, Run, Scenario, Skip, deadline, ignore_signals
from tests.chaos.scenarios import SCENARIOS

# Time that a scenario may take for starting, draining and stopping.
OVERHEAD_S = 300.0
OK, FAILED, SKIPPED, INTERRUPTED = "ok", "FAILED", "skipped", "interrupted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected scenarios one after another, and return 1 if any of them failed."""
    options = parse_arguments(arguments)
    selected = select_scenarios(options.only)
    if options.list:
        for one in selected:
            print(f"{one.name:<22} {one.seconds:3.0f} s  {one.summary}")
        return 0
    signal.signal(signal.SIGTERM, raise_interrupt)
    # A shell that runs this in the background ignores SIGINT for it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(2), "big")
    results: dict[str, str] = {}
    began = time.monotonic()
    for scenario in selected:
        results[scenario.name] = run_scenario(scenario, options.seconds or scenario.seconds, seed)
        if results[scenario.name] == INTERRUPTED:
            break
    print(f"\nseed {seed}, {time.monotonic() - began:.0f} s")
    for name, result in results.items():
        print(f"  {result:<11} {name}")
    if INTERRUPTED in results.values():
        return 130
    return 1 if FAILED in results.values() else 0


def run_scenario(scenario: Scenario, seconds: float, seed: int) -> str:
    """Run one scenario, print its account, always clean up, and return the result."""
    print(f"\n{scenario.name}: {scenario.summary} ({seconds:g} s, seed {seed})", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="lonnymq-chaos-"))
    # As root, servers run as another user, who must be able to enter the directory.
    directory.chmod(0o755)
    result = FAILED
    run = Run(scenario.name, seconds, seed, directory, ExitStack())
    try:
        with deadline(seconds + OVERHEAD_S, f"{scenario.name} to finish"):
            account = scenario.execute(run)
        for line in account.lines():
            print(f"  {line}")
        result = FAILED if account.problems else OK
    except Skip as reason:
        print(f"  {reason}")
        result = SKIPPED
    except KeyboardInterrupt:
        print("  interrupted, cleaning up")
        result = INTERRUPTED
    except (Exception, DeadlineExceeded):  # noqa: BLE001 - the other scenarios must still run
        traceback.print_exc(file=sys.stdout)
    finally:
        with ignore_signals():
            clean_up(run.cleanup)
    if result == FAILED:
        command = f'make chaos CHAOS_ARGS="--only {scenario.name} --seconds {seconds:g} --seed {seed}"'
        print(
            f"  FAILED with seed {seed}; ledgers and logs are in {directory}\n  to repeat: {command}",
            flush=True,
        )
    else:
        shutil.rmtree(directory, ignore_errors=True)
        print(f"  {result}", flush=True)
    return result


def clean_up(cleanup: ExitStack) -> None:
    """Undo everything; a step that fails does not prevent the others."""
    try:
        cleanup.close()
    except Exception:  # noqa: BLE001 - the error is printed, and does not change the result
        traceback.print_exc(file=sys.stdout)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="scenarios whose name contains this")
    parser.add_argument("--seconds", type=parse_seconds, help="how long each scenario injects faults")
    parser.add_argument("--seed", type=int, help="repeat the choices of an earlier run")
    parser.add_argument("--list", action="store_true", help="list the scenarios without running them")
    return parser.parse_args(arguments)


def parse_seconds(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"must be between 1 and 86400 seconds, got {text}")
    return seconds


def select_scenarios(parts: Sequence[str] | None) -> list[Scenario]:
    chosen = [one for one in SCENARIOS if not parts or any(part in one.name for part in parts)]
    if not chosen:
        names = ", ".join(one.name for one in SCENARIOS)
        sys.exit(f"no scenario's name contains {' or '.join(map(repr, parts or []))}; there are: {names}")
    return chosen


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
