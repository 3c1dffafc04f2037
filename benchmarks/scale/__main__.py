"""Where one PostgreSQL ends: CPU and WAL of a message, connections, channels, history."""

import argparse
import dataclasses
import sys

from benchmarks import merging, options, results
from benchmarks.scale import channels, connections, history, message
from benchmarks.scale.effort import EFFORTS
from benchmarks.server import serve

# One file each; the name is the key in the results.
SCENARIOS = {"message": message, "connections": connections, "channels": channels, "history": history}
NOTE = "One message is one create, one dequeue and one complete; create and complete are durable."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS), help="only this; repeatable")
    options.add_shared(
        parser,
        "scale",
        {
            "quick": "in under 5 minutes, up to 100,000 channels",
            "full": "up to a million channels",
            "smoke": "seconds",
        },
    )
    options.add_output(parser, "scale", "scenarios")
    chosen = parser.parse_args(arguments)
    effort = EFFORTS[chosen.effort]
    effort = dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds)
    with serve(chosen.dsn, chosen.server, is_warmed=chosen.effort != "smoke") as server:
        sql_before = results.sql_digest()
        found = {
            name: scenario.run(server, effort, lambda line: print(line, file=sys.stderr, flush=True))
            for name, scenario in SCENARIOS.items()
            if not chosen.scenario or name in chosen.scenario
        }
        head = results.circumstances(server, sql_before, {"effort": effort.name, "rounds": effort.rounds})
    if not chosen.no_write:
        content = head | {"note": NOTE} | found
        print(f"written to {merging.write(chosen.output, content, merged if chosen.merge else None)}")
    return 0


def merged(former: merging.Json, later: merging.Json) -> merging.Json:
    """Return the later run with those scenarios of the former that it has not measured again."""
    merging.check(former, later, (*merging.MACHINE, merging.SQL, merging.EFFORT))
    return {name: rows for name, rows in former.items() if name in SCENARIOS} | later


if __name__ == "__main__":
    sys.exit(main())
