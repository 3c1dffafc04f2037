"""Compares LonnyMQ with its peers, each in its own environment and with its best settings."""

import argparse
import contextlib
import dataclasses
import signal
import sys
import time

from benchmarks import merge, options, results
from benchmarks.peers import report, run, verdict
from benchmarks.peers.adapters import OURS, PEERS
from benchmarks.peers.merge_results import merge_results
from benchmarks.peers.peer import Peer, Service
from benchmarks.peers.scenario import EFFORTS, PeerHarness, Scenario
from benchmarks.peers.scenarios import SCENARIOS
from benchmarks.peers.services import Services
from benchmarks.server import run_server

# The scenarios of --quick, unless some are chosen.
QUICK_SCENARIOS = ("enqueue-one", "enqueue-bulk", "drain", "latency", "fairness")


def main(arguments: list[str] | None = None) -> int:
    chosen = parse(arguments)
    if chosen.list:
        list_all()
        return 0
    # SIGTERM must also stop the servers and workers that were started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began_at = time.monotonic()
    peers, scenarios = choose(chosen)
    effort = EFFORTS[chosen.effort]
    effort = dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            run_server(chosen.dsn, chosen.server, is_warmed=chosen.effort != "smoke")
        )
        services = Services(server, stack)
        sql_before = results.sql_digest()
        environments, reasons = run.install_peers(peers, services, progress)
        present = [peer for peer in peers if peer.name in environments]
        harness = PeerHarness(services, effort, environments)
        minutes = run.estimate_s(effort, scenarios, present) / 60
        progress(f"  about {minutes:.0f} minutes for {len(scenarios)} scenarios and {len(present)} peers")
        found, is_missed = [], False
        for scenario in scenarios:
            outcomes = run.measure_scenario(harness, scenario, present, progress)
            found.append(report.scenario_json(scenario, outcomes))
            verdicts = [verdict.judge(metric, outcomes) for metric in scenario.metrics]
            is_missed = is_missed or verdict.Verdict.MISSED in verdicts
            print(report.table(scenario, outcomes), flush=True)
        settings = {"effort": effort.name, "rounds": effort.rounds, "measures": dataclasses.asdict(effort)}
        head = results.run_header(server, sql_before, settings)
        head["servers"] = services.versions()
    progress(f"  all took {time.monotonic() - began_at:.0f} s")
    content = head | report.document(peers, reasons, found)
    if not chosen.no_write:
        path = merge.write_results(chosen.output, content, merge_results if chosen.merge else None)
        print(f"written to {path}")
    return 1 if chosen.strict and is_missed else 0


def choose(chosen: argparse.Namespace) -> tuple[list[Peer], list[Scenario]]:
    """Return what to measure; LonnyMQ is always included, to compare with."""
    is_quick = chosen.effort == "quick"
    peers = [
        peer
        for peer in PEERS
        if peer is OURS
        or (peer.name in chosen.peer if chosen.peer else not is_quick or peer.service is Service.POSTGRESQL)
    ]
    names = chosen.scenario or (QUICK_SCENARIOS if is_quick else [scenario.name for scenario in SCENARIOS])
    return peers, [scenario for scenario in SCENARIOS if scenario.name in names]


def list_all() -> None:
    print("peers:")
    for peer in PEERS:
        print(f"  {peer.name:20} {' '.join(peer.packages) or 'this checkout'}, {peer.service}")
    print("scenarios:")
    for scenario in SCENARIOS:
        print(f"  {scenario.name:20} {scenario.title}")


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    peers = [peer.name for peer in PEERS]
    scenarios = [scenario.name for scenario in SCENARIOS]
    parser.add_argument(
        "--peer",
        action="append",
        choices=peers,
        metavar="NAME",
        help="measure this peer and LonnyMQ; repeatable",
    )
    parser.add_argument(
        "--scenario",
        "--case",
        action="append",
        choices=scenarios,
        metavar="NAME",
        help="run only this scenario; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="list peers and scenarios, and exit")
    options.add_shared(
        parser,
        "peers",
        {
            "quick": "peers in PostgreSQL, main scenarios: under 5 minutes once installed",
            "full": "longer, in five rounds",
            "smoke": "a few seconds",
        },
    )
    options.add_output(parser, "peers", "scenarios")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
