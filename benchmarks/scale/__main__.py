"""Measures the limits of one PostgreSQL: costs of messages, connections, channels, inspection and history."""

import argparse
import dataclasses
import sys

from benchmarks import merge, options, results
from benchmarks.scale import channels, connections, history, inspection, message
from benchmarks.scale.effort import EFFORTS
from benchmarks.server import run_server

# One file each; the names are keys in the results.
SCENARIOS = {
    "message": message,
    "connections": connections,
    "channels": channels,
    "inspection": inspection,
    "history": history,
}
NOTE = "For each message there is one create, one dequeue and one complete; create and complete are durable."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--scenario", action="append", choices=list(SCENARIOS), help="run only this scenario; repeatable"
    )
    options.add_shared(
        parser,
        "scale",
        {
            "quick": "in under 5 minutes, up to 100,000 channels",
            "full": "up to a million channels",
            "smoke": "a few seconds",
        },
    )
    options.add_output(parser, "scale", "scenarios")
    chosen = parser.parse_args(arguments)
    effort = EFFORTS[chosen.effort]
    effort = dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds)
    with run_server(chosen.dsn, chosen.server, is_warmed=chosen.effort != "smoke") as server:
        sql_before = results.sql_digest()
        found = {
            name: scenario.run(server, effort, lambda line: print(line, file=sys.stderr, flush=True))
            for name, scenario in SCENARIOS.items()
            if not chosen.scenario or name in chosen.scenario
        }
        head = results.run_header(server, sql_before, {"effort": effort.name, "rounds": effort.rounds})
    if not chosen.no_write:
        content = head | {"note": NOTE} | found
        path = merge.write_results(chosen.output, content, merge_results if chosen.merge else None)
        print(f"written to {path}")
    return 0


def merge_results(former: merge.Json, later: merge.Json) -> merge.Json:
    """Return the later run, plus the scenarios that only the former run has measured."""
    merge.check_comparable(former, later, (*merge.MACHINE, merge.SQL, merge.EFFORT))
    return {name: rows for name, rows in former.items() if name in SCENARIOS} | later


if __name__ == "__main__":
    sys.exit(main())
