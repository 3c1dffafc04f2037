"""Merges a run of the peers into an earlier one, by scenario."""

from typing import Any

from benchmarks import merge
from benchmarks.merge import EFFORT, MACHINE, SQL, NotComparable
from benchmarks.peers.adapters import PEERS
from benchmarks.peers.scenarios import SCENARIOS

Json = dict[str, Any]


def merge_results(former: Json, later: Json) -> Json:
    """Return the later run, plus the scenarios and peers that only the former run has."""
    merge.check_comparable(former, later, (*MACHINE, SQL, EFFORT))
    check_settings(former, later)
    names = [scenario.name for scenario in SCENARIOS], [peer.name for peer in PEERS]
    return later | {
        part: merge.replace_rows(former[part], later[part], "name", order)
        for part, order in zip(("scenarios", "peers"), names, strict=True)
    }


def check_settings(former: Json, later: Json) -> None:
    """Raise NotComparable if a peer has other settings, or would be lost from a scenario."""
    before = {one["name"]: set(one.get("took_s", {})) for one in former["scenarios"]}
    for scenario in later["scenarios"]:
        if missing := before.get(scenario["name"], set()) - scenario.get("took_s", {}).keys():
            raise NotComparable(
                f"{scenario['name']} was not measured with {', '.join(sorted(missing))} this time"
            )
    settings = {one["name"]: (one["packages"], one["settings"]) for one in former["peers"]}
    for peer in later["peers"]:
        if settings.get(peer["name"], now := (peer["packages"], peer["settings"])) != now:
            raise NotComparable(f"{peer['name']} has other settings")
