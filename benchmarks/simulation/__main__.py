"""Simulates the waiting times of a million tenants: FIFO, turns, and turns with limits."""

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
    "fifo": ("one FIFO queue for all tenants", lambda traffic: Fifo()),
    "turns": (
        "tenants take turns",
        lambda traffic: Rotation(traffic.parameters.tenants, same_policy(SimulatedPolicy())),
    ),
    "weights": (
        f"turns; one tenant in 100 has weight {WEIGHT}",
        lambda traffic: Rotation(
            traffic.parameters.tenants,
            policy_for_some(traffic.paying, SimulatedPolicy(weight=WEIGHT), SimulatedPolicy()),
        ),
    ),
    "caps": (
        f"turns; at most {CAP} messages per tenant at a time",
        lambda traffic: Rotation(
            traffic.parameters.tenants, same_policy(SimulatedPolicy(max_concurrency=CAP))
        ),
    ),
    "rates": (
        f"turns; at most {1000 // INTERVAL_MS} messages per tenant and second, in bursts of up to {BURST}",
        lambda traffic: Rotation(
            traffic.parameters.tenants,
            same_policy(SimulatedPolicy(release_interval_ms=INTERVAL_MS, release_burst=BURST)),
        ),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=Parameters().seed)
    parser.add_argument(
        "--tenants", type=int, default=Parameters().tenants, help="slots are scaled with them"
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "simulation.json", metavar="PATH")
    chosen = parser.parse_args(arguments)
    traffic = make_traffic(scale_parameters(chosen.seed, chosen.tenants))
    print(
        f"{len(traffic.at):,} messages of {traffic.parameters.tenants:,} tenants"
        f" in {traffic.parameters.duration_s} s"
    )
    found: dict[str, tuple[str, Waits]] = {}
    for name, (title, scheduler) in POLICIES.items():
        began_at = time.monotonic()
        found[name] = title, simulate(traffic, scheduler(traffic))
        print(f"  {name}: {title} ({time.monotonic() - began_at:.0f} s)", flush=True)
    print(f"written to {results.save(chosen.output, report.document(traffic, found))}")
    return 0


def scale_parameters(seed: int, tenants: int) -> Parameters:
    """Return the parameters for this many tenants, with the same load per slot."""
    default = Parameters(seed=seed)
    scale = tenants / default.tenants
    return Parameters(
        seed=seed,
        tenants=tenants,
        slots=max(20, round(default.slots * scale)),
        largest=max(200, round(default.largest * scale)),
    )


if __name__ == "__main__":
    sys.exit(main())
