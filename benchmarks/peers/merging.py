"""Puts the scenarios of a run into the results of another, if they can stand in one table."""

import json
from pathlib import Path
from typing import Any

from benchmarks.peers.scenarios import SCENARIOS

Json = dict[str, Any]
# What must be the same; each scenario keeps its own date and load.
ALIKE = (
    ("machine", "cpu"),
    ("machine", "cores"),
    ("versions", "postgresql"),
    ("versions", "python"),
    ("versions", "sql"),
    ("settings", "effort"),
)


class NotAlike(ValueError):
    """The two runs cannot be compared; the message says in what they differ."""


def merged(path: Path, later: Json) -> Json:
    """Return the later run with those scenarios of the file that it has not measured again."""
    if not path.exists():
        return later
    former: Json = json.loads(path.read_text(encoding="utf-8"))
    check(former, later)
    scenarios = {one["name"]: one for one in (*former["scenarios"], *later["scenarios"])}
    peers = {one["name"]: one for one in (*former["peers"], *later["peers"])}
    order = [scenario.name for scenario in SCENARIOS]
    return later | {
        "peers": list(peers.values()),
        "scenarios": sorted(scenarios.values(), key=lambda one: order.index(one["name"])),
    }


def check(former: Json, later: Json) -> None:
    for part, name in ALIKE:
        before, now = former[part].get(name), later[part].get(name)
        if before != now:
            raise NotAlike(f"{part}, {name}: {before} in the file, {now} in this run")
    settings = {one["name"]: (one["packages"], one["settings"]) for one in former["peers"]}
    for peer in later["peers"]:
        if settings.get(peer["name"], now := (peer["packages"], peer["settings"])) != now:
            raise NotAlike(f"{peer['name']} was set up in another way")
