"""The comparison with peers still runs, with our own adapter, in small; peers are no part of the tests."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.charts import peers as charts
from benchmarks.peers import __main__ as command
from benchmarks.peers import report, run
from benchmarks.peers.adapters import OURS, PEERS
from benchmarks.peers.environment import NotInstallable
from benchmarks.peers.meter import Meter, rate
from benchmarks.peers.peer import Feature, Service
from benchmarks.peers.run import Outcome
from benchmarks.peers.scenario import EFFORTS, Bench, Metric, Scenario
from benchmarks.peers.scenarios import SCENARIOS
from benchmarks.peers.services import Services
from benchmarks.peers.stage import ProgramFailed
from benchmarks.server import Server

FASTER = Metric("rate", "a rate", "messages/s", True)
SOONER = Metric("wait", "a wait", "ms", False)


def silent(line: str) -> None:
    pass


@pytest.fixture
def services(server: Any) -> Iterator[Services]:
    with contextlib.ExitStack() as stack:
        yield Services(Server(server.dsn), stack)


@pytest.fixture
def bench(services: Services) -> Bench:
    environments, reasons = run.available([OURS], services, silent)
    assert not reasons
    return Bench(services, EFFORTS["smoke"], environments)


@pytest.mark.parametrize("name", ["latency", "fairness"])
def test_our_own_adapter_plays_a_scenario(bench: Bench, name: str) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == name]

    outcomes = run.measured(bench, scenario, [OURS], silent)

    [figures] = outcomes[OURS.name].rounds
    assert figures.keys() == {metric.key for metric in scenario.metrics}
    assert all(value is not None and value >= 0 for value in figures.values())
    if name == "fairness":
        assert 100 <= (figures["handled"] or 0) <= 120


def test_what_a_killed_worker_had_runs_again(bench: Bench) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == "killed-worker"]

    figures = scenario.measure(bench, OURS)

    assert figures["lost"] == 0
    assert figures["again"] is not None


def test_a_worker_that_does_not_start_is_told_of_with_its_log(bench: Bench) -> None:
    with bench.stage(OURS) as stage, pytest.raises(ProgramFailed, match=r"did not start(.|\n)*prefetch"):
        with stage.crew(1, batch=-1):
            pass


def test_scenarios_and_peers_have_names_of_their_own_and_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--list"]) == 0
    words = capsys.readouterr().out.split()
    for name in [*(peer.name for peer in PEERS), *(scenario.name for scenario in SCENARIOS)]:
        assert words.count(name) >= 1
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert all("==" in package or "@" in package for peer in PEERS for package in peer.packages)


def test_a_peer_that_cannot_be_installed_is_skipped_with_the_reason(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(peer: Any) -> None:
        raise NotInstallable("no such thing here")

    monkeypatch.setattr(run, "installed", refuse)
    [peer] = [peer for peer in PEERS if peer.name == "pgqueuer"]

    environments, reasons = run.available([peer], services, silent)

    assert not environments
    assert reasons == {"pgqueuer": "no such thing here"}


def test_a_peer_without_the_feature_is_not_measured(bench: Bench) -> None:
    def never(bench: Bench, peer: Any) -> dict[str, float]:
        raise AssertionError("measured all the same")

    scenario = Scenario("one", "one", (FASTER,), never, needs=frozenset({Feature.SNAPSHOT}))
    [peer] = [peer for peer in PEERS if peer.service is Service.REDIS]

    assert (
        run.measured(bench, scenario, [peer], silent)[peer.name].absent == "not offered: lives in PostgreSQL"
    )


def test_a_rate_leaves_out_the_first_tenth_and_the_last() -> None:
    slow_start_and_end = [(0.0, 0), (50.0, 10), (58.0, 80), (99.0, 10)]
    assert rate(slow_start_and_end) == pytest.approx(10.0)
    assert rate([]) == 0.0


def test_the_meter_adds_up_what_processes_say(tmp_path: Path) -> None:
    meter = Meter(tmp_path / "meter")
    with meter.path.open("w") as pipe:
        for pid, count in [(1, 5), (2, 7), (1, 9)]:
            print(json.dumps({"pid": pid, "at": 10**9 * count, "count": count}), file=pipe)
        print(json.dumps({"pid": 3, "events": [[10**9, "small/1", 0], [2 * 10**9, "small/1", 1]]}), file=pipe)
    assert meter.wait(17, silence_s=30.0)
    meter.close()
    assert meter.total == 17
    assert [event.tenant for event in meter.begun()] == ["small"]


@pytest.mark.parametrize(
    ("metric", "ours", "theirs", "holds"),
    [
        (FASTER, 90.0, 80.0, True),
        (FASTER, 70.0, 80.0, False),
        (SOONER, 1.0, 2.0, True),
        (SOONER, 3.0, 2.0, False),
    ],
)
def test_a_verdict_compares_with_the_best_peer(
    metric: Metric, ours: float, theirs: float, holds: bool
) -> None:
    worse = theirs / 2 if metric.is_higher_better else theirs * 2
    outcomes = {
        OURS.name: Outcome([{metric.key: ours}]),
        "pgqueuer": Outcome([{metric.key: theirs}]),
        "chancy": Outcome([{metric.key: worse}]),
        "procrastinate": Outcome([{metric.key: None}]),
    }
    answer = report.metric_json(metric, outcomes)
    assert (answer["best_peer"], answer["holds"]) == ("pgqueuer", holds)


def test_results_become_charts_and_tables() -> None:
    scenario = Scenario("drain", "Drain", (FASTER, SOONER), lambda bench, peer: {})
    outcomes = {
        OURS.name: Outcome([{"rate": 100.0, "wait": 1.0}, {"rate": 120.0, "wait": 2.0}]),
        "pgqueuer": Outcome([{"rate": 50.0, "wait": None}]),
        "celery-redis": Outcome(absent="not offered: rate limit"),
    }
    document = json.loads(json.dumps(report.document(PEERS, {"chancy": "no PyPI"}, [(scenario, outcomes)])))

    made = charts.make(document)

    assert made.parts.keys() == set(charts.PARTS)
    assert "100 to 120" in made.parts["peers-scenarios"]
    assert "not offered" in made.parts["peers-scenarios"]
    assert "no PyPI" in made.parts["peers-settings"]
    assert "| yes |" in made.parts["peers-verdicts"]
    assert ElementTree.fromstring(made.charts["peers-drain.svg"]) is not None
    assert report.table(scenario, outcomes)
