"""The comparison with peers runs with LonnyMQ's own adapter; the peers themselves are not tested."""

import contextlib
import dataclasses
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.charts import peers as charts
from benchmarks.merge import NotComparable
from benchmarks.peers import __main__ as command
from benchmarks.peers import report, run
from benchmarks.peers.adapters import OURS, PEERS
from benchmarks.peers.deployment import ProgramFailed
from benchmarks.peers.environment import NotInstallable
from benchmarks.peers.merge_results import merge_results
from benchmarks.peers.peer import Feature, Service
from benchmarks.peers.programs import kit
from benchmarks.peers.progress import Event, ProgressReader, rate
from benchmarks.peers.run import Outcome
from benchmarks.peers.scenario import EFFORTS, Figures, Metric, PeerHarness, Sampled, Scenario
from benchmarks.peers.scenarios import SCENARIOS
from benchmarks.peers.scenarios.concurrency_cap import concurrency
from benchmarks.peers.scenarios.rate_limit import precision
from benchmarks.peers.services import Services
from benchmarks.server import Server

FASTER = Metric("rate", "a rate", "messages/s", True)
SOONER = Metric("wait", "a wait", "ms", False)


def ignore_progress(line: str) -> None:
    pass


@pytest.fixture
def services(server: Any) -> Iterator[Services]:
    with contextlib.ExitStack() as stack:
        yield Services(Server(server.dsn), stack)


@pytest.fixture
def harness(services: Services) -> PeerHarness:
    environments, reasons = run.install_peers([OURS], services, ignore_progress)
    assert not reasons
    return PeerHarness(services, EFFORTS["smoke"], environments)


@pytest.mark.parametrize("name", ["latency", "fairness"])
def test_lonnymq_can_be_measured_in_a_scenario(harness: PeerHarness, name: str) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == name]

    outcomes = run.measure_scenario(harness, scenario, [OURS], ignore_progress)

    [figures] = outcomes[OURS.name].rounds
    assert figures.keys() == {metric.key for metric in scenario.metrics}
    assert all(value is not None and value >= 0 for value in figures.values())
    if name == "fairness":
        assert 100 <= (figures["handled"] or 0) <= 120


def test_messages_of_a_killed_worker_run_again(harness: PeerHarness) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == "killed-worker"]

    figures = scenario.measure(harness, OURS)

    assert figures["lost"] == 0
    assert figures["again"] is not None


def test_the_log_of_a_worker_that_does_not_start_is_shown(harness: PeerHarness) -> None:
    with (
        harness.deploy(OURS) as deployment,
        pytest.raises(ProgramFailed, match=r"did not start(.|\n)*prefetch"),
    ):
        with deployment.workers(1, batch=-1):
            pass


def test_scenarios_and_peers_have_unique_names_and_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--list"]) == 0
    words = capsys.readouterr().out.split()
    for name in [*(peer.name for peer in PEERS), *(scenario.name for scenario in SCENARIOS)]:
        assert words.count(name) >= 1
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert all("==" in package or "@" in package for peer in PEERS for package in peer.packages)


def test_a_peer_that_cannot_be_installed_is_skipped_with_a_reason(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(peer: Any) -> None:
        raise NotInstallable("not installable")

    monkeypatch.setattr(run, "install", refuse)
    [peer] = [peer for peer in PEERS if peer.name == "pgqueuer"]

    environments, reasons = run.install_peers([peer], services, ignore_progress)

    assert not environments
    assert reasons == {"pgqueuer": "not installable"}


def test_a_peer_without_a_needed_feature_is_not_measured(harness: PeerHarness) -> None:
    def never(harness: PeerHarness, peer: Any) -> dict[str, float]:
        raise AssertionError("the peer was measured")

    scenario = Scenario("one", "one", (FASTER,), never, "by the rate", needs=frozenset({Feature.SNAPSHOT}))
    [peer] = [peer for peer in PEERS if peer.service is Service.REDIS]

    assert (
        run.measure_scenario(harness, scenario, [peer], ignore_progress)[peer.name].absent
        == "no such feature: storage in PostgreSQL"
    )


def test_a_rate_excludes_the_first_and_the_last_tenth() -> None:
    slow_start_and_end = [(0.0, 0), (50.0, 10), (58.0, 80), (99.0, 10)]
    assert rate(slow_start_and_end) == pytest.approx(10.0)
    assert rate([]) == 0.0


def test_a_program_with_threads_counts_every_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ProgressReader(tmp_path / "progress")
    command = kit.Command(action="work", progress_pipe=str(reader.path))
    monkeypatch.setenv(kit.COMMAND_VARIABLE, json.dumps(dataclasses.asdict(command)))
    monkeypatch.setattr(kit, "_writers", {})
    together = threading.Barrier(8)

    def work() -> None:
        together.wait()
        for _ in range(10_000):
            kit.handle_blocking(command.message("x"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert reader.wait(80_000, stuck_after_s=30.0)
    assert reader.total == 80_000


def test_progress_of_several_processes_is_added_up(tmp_path: Path) -> None:
    reader = ProgressReader(tmp_path / "progress")
    with reader.path.open("w") as pipe:
        for pid, count in [(1, 5), (2, 7), (1, 9)]:
            print(json.dumps({"pid": pid, "at": 10**9 * count, "count": count}), file=pipe)
        print(json.dumps({"pid": 3, "events": [[10**9, "small/1", 0], [2 * 10**9, "small/1", 1]]}), file=pipe)
    assert reader.wait(17, stuck_after_s=30.0)
    reader.close()
    assert reader.total == 17
    assert [event.tenant for event in reader.beginnings()] == ["small"]


@pytest.mark.parametrize(
    ("metric", "ours", "theirs", "verdict"),
    [
        (FASTER, [90.0], [80.0], "yes"),
        (FASTER, [70.0], [80.0], "no"),
        (SOONER, [1.0], [2.0], "yes"),
        (SOONER, [3.0], [2.0], "no"),
        (SOONER, [None], [2.0], "no"),
        # Too close to tell apart, or as good as possible.
        (FASTER, [82.0], [80.0], "tie"),
        (FASTER, [78.0, 78.0], [80.0, 80.0], "tie"),
        (SOONER, [0.0], [0.0], "tie"),
        (dataclasses.replace(SOONER, enough=2.5), [2.4], [2.0], "tie"),
        (dataclasses.replace(FASTER, bound=0.8), [64.0], [80.0], "yes"),
        (dataclasses.replace(SOONER, bound=1.25), [2.6], [2.0], "no"),
        # Ahead in some rounds and behind in others is a tie, regardless of the medians.
        (FASTER, [90.0, 91.0, 70.0], [80.0, 80.0, 80.0], "tie"),
        (FASTER, [70.0, 71.0, 90.0], [80.0, 80.0, 80.0], "tie"),
        # Figures of the same round are compared: both were slow in the second.
        (SOONER, [1.0, 5.0, 1.0], [2.0, 6.0, 2.0], "yes"),
    ],
)
def test_a_verdict_compares_with_every_peer_round_by_round(
    metric: Metric, ours: list[float | None], theirs: list[float], verdict: str
) -> None:
    factor = 0.5 if metric.is_higher_better else 2.0
    outcomes = {
        OURS.name: Outcome([{metric.key: value} for value in ours]),
        "pgqueuer": Outcome([{metric.key: value} for value in theirs]),
        "chancy": Outcome([{metric.key: factor * value} for value in theirs]),
        "procrastinate": Outcome([{metric.key: None} for _ in theirs]),
    }
    answer = report.metric_json(metric, outcomes)
    assert (answer["best_peer"], answer["verdict"]) == ("pgqueuer", verdict)


def test_a_figure_may_be_compared_only_with_peers_on_the_same_kind_of_server() -> None:
    metric = dataclasses.replace(SOONER, service=Service.POSTGRESQL)
    broker = next(peer.name for peer in PEERS if peer.service is Service.RABBITMQ)
    rounds = {OURS.name: 3.0, "pgqueuer": 4.0, broker: 1.0}
    outcomes = {name: Outcome([{metric.key: value}]) for name, value in rounds.items()}
    answer = report.metric_json(metric, outcomes)
    assert (answer["best_peer"], answer["verdict"], answer["service"]) == ("pgqueuer", "yes", "postgresql")
    assert report.metric_json(SOONER, outcomes)["best_peer"] == broker


def test_percentiles_are_computed_over_all_rounds() -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == "latency"]
    rounds: list[Figures] = [
        Sampled({"p99": 1.0}, [1.0] * 99),
        Sampled({"p99": 9.0}, [1.0] * 99 + [7.0, 9.0]),
    ]
    answer = json.loads(json.dumps(report.metric_json(scenario.metrics[-1], {OURS.name: Outcome(rounds)})))
    [result] = answer["results"]
    assert (result["value"], result["rounds"], result["samples"]) == (7.0, [1.0, 9.0], 200)


def test_a_figure_measured_under_easier_conditions_has_a_remark() -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == "held-snapshot"]
    rounds: list[Figures] = [{"held": 5.0, "ratio": 0.5, "gone": 1_500.0, "asked": 2_000.0}]
    found = json.loads(json.dumps(report.scenario_json(scenario, {OURS.name: Outcome(rounds)})))
    assert "| 0.5 *after 1,500* |" in charts.scenario_text(found, {OURS.name: OURS.title})


def test_a_rate_limit_may_be_kept_in_bursts_or_evenly() -> None:
    even = [number * 0.05 for number in range(100)]
    bursts = sorted(second + number * 0.001 for second in range(5) for number in range(20))
    assert precision(even, 4.0)["got"] == precision(bursts, 4.0)["got"] == 20.0
    # A queue that misses the rate by this much has no gap.
    slow = [number * 0.1 for number in range(100)]
    assert precision(slow, 4.0) == {"error": 50.0, "got": 10.0, "gap": None}
    assert precision([number * 0.0625 for number in range(100)], 4.0)["gap"] == 50.0


def test_a_cap_is_judged_by_messages_running_at_the_same_time() -> None:
    def turns(lanes: int) -> list[Event]:
        return [
            Event(at_s + is_end, f"{lane}/{at_s}", bool(is_end), lane)
            for lane in range(lanes)
            for at_s in range(10)
            for is_end in (0, 1)
        ]

    most, average = concurrency(turns(3))
    assert (most, round(average, 6)) == (3, 3.0)
    # A third message runs for a tenth of the time.
    assert concurrency([*turns(2), Event(4.0, "x", False, 9), Event(5.0, "x", True, 9)])[0] == 3
    assert concurrency([]) == (0, 0.0)


def test_only_comparable_runs_are_merged() -> None:
    def document(sql: str, *scenarios: str) -> dict[str, Any]:
        machine, settings = {"cpu": "one", "cores": 2}, {"effort": "quick"}
        versions = {"postgresql": "15", "python": "3", "sql": sql}
        found = [{"name": name} for name in scenarios]
        return {
            "machine": machine,
            "versions": versions,
            "settings": settings,
            "peers": [report.peer_json(OURS, None)],
            "scenarios": found,
        }

    former = document("same", "drain", "latency")

    together = merge_results(former, document("same", "enqueue-one", "drain"))
    assert [one["name"] for one in together["scenarios"]] == ["enqueue-one", "drain", "latency"]
    with pytest.raises(NotComparable, match="sql"):
        merge_results(former, document("changed", "drain"))
    former["scenarios"][0]["took_s"] = {"chancy": 1.0}
    with pytest.raises(NotComparable, match="chancy"):
        merge_results(former, document("same", "drain"))


def test_results_become_charts_and_tables() -> None:
    scenario = Scenario("drain", "Drain", (FASTER, SOONER), lambda harness, peer: {}, "by both")
    outcomes = {
        OURS.name: Outcome([{"rate": 100.0, "wait": 1.0}, {"rate": 120.0, "wait": 2.0}]),
        "pgqueuer": Outcome([{"rate": 50.0, "wait": None}]),
        "celery-redis": Outcome(absent="no such feature: rate limit"),
    }
    document = json.loads(
        json.dumps(report.document(PEERS, {"chancy": "no PyPI"}, [report.scenario_json(scenario, outcomes)]))
    )

    made = charts.make(document)

    assert made.parts.keys() == set(charts.PARTS)
    assert "100 to 120" in made.parts["peers-scenarios"]
    assert "no such feature" in made.parts["peers-scenarios"]
    assert "no PyPI" in made.parts["peers-settings"]
    assert "| yes |" in made.parts["peers-verdicts"]
    assert ElementTree.fromstring(made.charts["peers-drain.svg"]) is not None
    assert report.table(scenario, outcomes)
