"""Waiting times of a million tenants: FIFO, turns, and turns with weights, caps and rate limits."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import results
from benchmarks.options import RESULTS
from benchmarks.simulation import report
from benchmarks.simulation.rules import SimulatedPolicy
from benchmarks.simulation.schedulers import Fifo, Rotation, Scheduler, policy_for_some, same_policy
from benchmarks.simulation.simulate import Waits, simulate
from benchmarks.simulation.traffic import Parameters, Traffic, make_traffic

WEIGHT = 10
CAP = 10
INTERVAL_MS, BURST = 50, 20
POLICIES: dict[str, tuple[str, Callable[[Traffic], Scheduler]]] = {
    "fifo": ("one line for everybody", lambda traffic: Fifo()),
    "turns": (
        "tenants take turns",
        lambda traffic: Rotation(traffic.world.tenants, same_policy(SimulatedPolicy())),
    ),
    "weights": (
        f"turns; one tenant in 100 pays for weight {WEIGHT}",
        lambda traffic: Rotation(
            traffic.world.tenants,
            policy_for_some(traffic.paying, SimulatedPolicy(weight=WEIGHT), SimulatedPolicy()),
        ),
    ),
    "caps": (
        f"turns; at most {CAP} messages of a tenant at a time",
        lambda traffic: Rotation(traffic.world.tenants, same_policy(SimulatedPolicy(max_concurrency=CAP))),
    ),
    "rates": (
        f"turns; at most {1000 // INTERVAL_MS} messages of a tenant per second, {BURST} at once",
        lambda traffic: Rotation(
            traffic.world.tenants,
            same_policy(SimulatedPolicy(release_interval_ms=INTERVAL_MS, release_burst=BURST)),
        ),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=Parameters().seed)
    parser.add_argument("--tenants", type=int, default=Parameters().tenants, help="slots shrink with them")
    parser.add_argument("--output", type=Path, default=RESULTS / "simulation.json", metavar="PATH")
    chosen = parser.parse_args(arguments)
    traffic = make_traffic(world(chosen.seed, chosen.tenants))
    print(
        f"{len(traffic.at):,} messages of {traffic.world.tenants:,} tenants in {traffic.world.duration_s} s"
    )
    found: dict[str, tuple[str, Waits]] = {}
    for name, (title, scheduler) in POLICIES.items():
        began_at = time.monotonic()
        found[name] = title, simulate(traffic, scheduler(traffic))
        print(f"  {name}: {title} ({time.monotonic() - began_at:.0f} s)", flush=True)
    print(f"written to {results.save(chosen.output, report.document(traffic, found))}")
    return 0


def world(seed: int, tenants: int) -> Parameters:
    """Return a world of that size with the same load per slot."""
    whole = Parameters(seed=seed)
    share_reply = tenants / whole.tenants
    return Parameters(
        seed=seed,
        tenants=tenants,
        slots=max(20, round(whole.slots * share_reply)),
        largest=max(200, round(whole.largest * share_reply)),
    )


if __name__ == "__main__":
    sys.exit(main())
