"""Waiting times of a million tenants: FIFO, turns, and turns with weights, caps and rate limits."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import results
from benchmarks.options import RESULTS
from benchmarks.simulation import report
from benchmarks.simulation.play import Waits, play
from benchmarks.simulation.rules import Policy
from benchmarks.simulation.schedulers import Fifo, Rotation, Scheduler, same_for_all, some_of
from benchmarks.simulation.traffic import Traffic, World, make

WEIGHT = 10
CAP = 10
INTERVAL_MS, BURST = 50, 20
POLICIES: dict[str, tuple[str, Callable[[Traffic], Scheduler]]] = {
    "fifo": ("one line for everybody", lambda traffic: Fifo()),
    "turns": (
        "tenants take turns",
        lambda traffic: Rotation(traffic.world.tenants, same_for_all(Policy())),
    ),
    "weights": (
        f"turns; one tenant in 100 pays for weight {WEIGHT}",
        lambda traffic: Rotation(
            traffic.world.tenants, some_of(traffic.paying, Policy(weight=WEIGHT), Policy())
        ),
    ),
    "caps": (
        f"turns; at most {CAP} messages of a tenant at a time",
        lambda traffic: Rotation(traffic.world.tenants, same_for_all(Policy(max_concurrency=CAP))),
    ),
    "rates": (
        f"turns; at most {1000 // INTERVAL_MS} messages of a tenant per second, {BURST} at once",
        lambda traffic: Rotation(
            traffic.world.tenants,
            same_for_all(Policy(release_interval_ms=INTERVAL_MS, release_burst=BURST)),
        ),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=World().seed)
    parser.add_argument("--tenants", type=int, default=World().tenants, help="slots shrink with them")
    parser.add_argument("--output", type=Path, default=RESULTS / "simulation.json", metavar="PATH")
    chosen = parser.parse_args(arguments)
    traffic = make(world(chosen.seed, chosen.tenants))
    print(
        f"{len(traffic.at):,} messages of {traffic.world.tenants:,} tenants in {traffic.world.duration_s} s"
    )
    found: dict[str, tuple[str, Waits]] = {}
    for name, (title, scheduler) in POLICIES.items():
        began_at = time.monotonic()
        found[name] = title, play(traffic, scheduler(traffic))
        print(f"  {name}: {title} ({time.monotonic() - began_at:.0f} s)", flush=True)
    print(f"written to {results.save(chosen.output, report.document(traffic, found))}")
    return 0


def world(seed: int, tenants: int) -> World:
    """Return a world of that size with the same load per slot."""
    whole = World(seed=seed)
    share = tenants / whole.tenants
    return World(
        seed=seed,
        tenants=tenants,
        slots=max(20, round(whole.slots * share)),
        largest=max(200, round(whole.largest * share)),
    )


if __name__ == "__main__":
    sys.exit(main())
