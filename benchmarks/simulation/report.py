"""Formats the results for results/simulation.json: waiting times of tenants by their size."""

import dataclasses

from benchmarks.results import round_figure
from benchmarks.simulation.rules import SECOND
from benchmarks.simulation.simulate import Waits
from benchmarks.simulation.traffic import Traffic

# The most messages of a tenant in each group.
GROUPS = {"1": 1, "2 to 10": 10, "11 to 100": 100, "101 to 1k": 1_000, "1k to 10k": 10_000, "more": 10**12}
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)


def document(traffic: Traffic, results: dict[str, tuple[str, Waits]]) -> dict[str, object]:
    groups = group_tenants(traffic)
    return {
        "seed": traffic.parameters.seed,
        "parameters": dataclasses.asdict(traffic.parameters),
        "messages": len(traffic.at),
        "active": sum(map(len, groups.values())),
        "groups": [
            {
                "name": name,
                "tenants": len(tenants),
                "messages": sum(map(traffic.messages_of.__getitem__, tenants)),
            }
            for name, tenants in groups.items()
        ],
        "percentiles": list(PERCENTILES),
        "policies": [policy(traffic, groups, name, *result) for name, result in results.items()],
    }


def policy(
    traffic: Traffic, groups: dict[str, list[int]], name: str, title: str, waits: Waits
) -> dict[str, object]:
    all_means = means(waits, [tenant for tenants in groups.values() for tenant in tenants])
    return {
        "name": name,
        "title": title,
        "all": [round_figure(percentile(all_means, percent)) for percent in PERCENTILES],
        "groups": [group(traffic, waits, name, tenants) for name, tenants in groups.items()],
        "max_in_flight": max(waits.max_in_flight),
        "all_done_after_s": round_figure(waits.ended_at / SECOND),
        "idle_share": round_figure(waits.idle_share),
    }


def group(traffic: Traffic, waits: Waits, name: str, tenants: list[int]) -> dict[str, object]:
    """Return the waits of a group, and separately those of its slow and its paying tenants."""
    usual = means(waits, [tenant for tenant in tenants if tenant not in traffic.slow])
    slow = means(waits, [tenant for tenant in tenants if tenant in traffic.slow])
    paying = means(waits, [tenant for tenant in tenants if tenant in traffic.paying])
    return {
        "name": name,
        "p50": round_figure(percentile(usual, 50)),
        "p99": round_figure(percentile(usual, 99)),
        "p50_slow": round_figure(percentile(slow, 50)),
        "p50_paying": round_figure(percentile(paying, 50)),
    }


def group_tenants(traffic: Traffic) -> dict[str, list[int]]:
    """Return the tenants that had messages, grouped by how many."""
    groups: dict[str, list[int]] = {name: [] for name in GROUPS}
    for tenant, count in enumerate(traffic.messages_of):
        if count:
            groups[next(name for name, most in GROUPS.items() if count <= most)].append(tenant)
    return groups


def means(waits: Waits, tenants: list[int]) -> list[float]:
    """Return the tenants' mean waits in seconds, in ascending order."""
    return sorted(waits.mean(tenant) / SECOND for tenant in tenants)


def percentile(ordered: list[float], percent: float) -> float | None:
    """Return a percentile of ordered values; None if there are none."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
