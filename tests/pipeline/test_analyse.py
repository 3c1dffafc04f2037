"""The analysis: incremental runs, synthetic histories, and the forecast."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lonnymq.errors import InvalidArgument
from tests.examples.pages import ROOT
from tests.pipeline import reference_windows
from tests.pipeline.conftest import HalfAnalysed
from tests.pipeline.frames import policies_frame
from tests.pipeline.plans import executed_scans
from tests.pipeline.reference_windows import Attempt, ReferencePolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lonnymq.pipeline.lake import Lake
    from lonnymq.pipeline.report.summary import Summary

REASONS = ("own_cap_ms", "own_rate_limit_ms", "own_burst_ms", "noisy_neighbour_ms", "busy_workers_ms")
START = datetime(2030, 1, 1, tzinfo=UTC)


def rows_of(frame: "DataFrame") -> list[str]:
    """Return all rows in order; sums of floating-point numbers may differ in the last digits."""
    from pyspark.sql import functions as f

    rounded = (f.round(name, 6).alias(name) if kind == "double" else name for name, kind in frame.dtypes)
    return sorted(map(str, frame.select(*rounded).toArrow().to_pylist()))


def assert_pruned(scans: list[str], *tables: str) -> None:
    """Check that files are chosen by their day: by Spark, as a filter of partitions, or by a list of them."""
    found = set()
    for scan in scans:
        [table, *_] = re.findall(r"/(\w+)/day=", scan)
        found.add(table)
        # All policies are needed. To find the days that new files affect, and how earlier attempts of the
        # messages ended, files are listed.
        is_listed = table == "attempts" and ("In(outcome" in scan or "message_id" not in scan)
        assert table == "policies" or is_listed or re.search(r"PartitionFilters: .*\bday#", scan), scan
    assert found - {"policies"} == set(tables)


def test_days_that_were_not_asked_for_are_left_for_a_later_run(
    spark: "SparkSession", half_analysed: HalfAnalysed
) -> None:
    from lonnymq.pipeline.analyse import _days_affected, _stale_days
    from lonnymq.pipeline.report.summarise import NothingToReport
    from lonnymq.pipeline.steps import DayRange, report_page

    lake, first = half_analysed.lake, date(2030, 1, 1)
    assert_pruned(half_analysed.scans, "attempts", "windows_60s")
    # And the day before, on which messages were created.
    assert half_analysed.result.days[-1] == first
    assert list(half_analysed.result.days) == lake.windows(60).days() == lake.reasons.days()
    with executed_scans(spark) as scans, pytest.raises(NothingToReport, match="no window of these days"):
        report_page(spark, lake, window_s=60, within=DayRange(since=date(2030, 1, 2)))
    assert_pruned(scans, "windows_60s")
    # All days, because a table records only that all of it is up to date.
    affected = partial(_days_affected, spark, lake)
    for table in (lake.windows(60), lake.reasons, lake.fairness(60)):
        assert set(_stale_days(affected, lake, table, is_full=False)) > {first}
    with pytest.raises(InvalidArgument, match="since must be no later than until, 2029-12-31"):
        DayRange(first, date(2029, 12, 31))


def test_late_rows_are_analysed_as_if_they_had_arrived_in_time(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    from lonnymq.pipeline.analyse import analyse
    from lonnymq.pipeline.lake import Batch, Lake
    from lonnymq.pipeline.synthetic import SyntheticHistory, generate, policies

    synthetic = SyntheticHistory(rows=600, days=3, tenants=3)
    history = generate(spark, synthetic).cache()
    is_late = (f.pmod(f.hash("id"), f.lit(2)) == 1) & (f.col("day") < "2030-01-02")
    lake, full = Lake(str(tmp_path / "lake")), Lake(str(tmp_path / "full"))
    for one in (lake, full):
        one.policies.append(policies(spark, synthetic), Batch("w", 0))
    lake.attempts.append(history.where(~is_late), Batch("w", 1))
    first = analyse(spark, lake).days
    lake.attempts.append(history.where(is_late), Batch("w", 2))
    second = analyse(spark, lake).days
    # Late rows of the first days do not affect the last days.
    assert date(2030, 1, 1) in second
    assert second[-1] < first[-1]
    full.attempts.append(history, Batch("w", 1))
    analyse(spark, full)
    assert rows_of(lake.windows(60).read(spark)) == rows_of(full.windows(60).read(spark))
    assert rows_of(lake.reasons.read(spark)) == rows_of(full.reasons.read(spark))
    assert rows_of(lake.forecast.read(spark)) == rows_of(full.forecast.read(spark))
    history.unpersist()


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_an_incremental_analysis_equals_a_full_one(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as f

    from lonnymq.pipeline.analyse import _stale_days, analyse
    from lonnymq.pipeline.lake import Batch, Lake
    from lonnymq.pipeline.synthetic import SyntheticHistory, generate, policies

    synthetic = SyntheticHistory(rows=600, days=3, tenants=3)
    first_policies = policies(spark, synthetic)
    later_policies = policies_frame(
        spark, [ReferencePolicy("noisy", weight=9), ReferencePolicy("failing", 1, 1)], date(2030, 1, 2)
    )
    # Half of the rows arrive on time, and more rows of the first days arrive after all days are over.
    is_on_time = f.pmod(f.hash("id"), f.lit(2)) == 0
    is_late = ~is_on_time & (f.col("day") < "2030-01-02")
    history = generate(spark, synthetic).where(is_on_time | is_late).cache()
    assert 300 < history.count() < 600
    lake, full = Lake(str(tmp_path / "lake")), Lake(str(tmp_path / "full"))
    lake.policies.append(first_policies, Batch("w", 0))
    arrivals = [
        (lake.attempts, history.where(is_on_time)),
        (lake.policies, later_policies),
        (lake.attempts, history.where(is_late)),
    ]
    computed = []
    for number, (table, rows) in enumerate(arrivals, 1):
        table.append(rows, Batch("w", number))
        computed.append(analyse(spark, lake).days)
    assert computed[1][0] == date(2030, 1, 2)
    # Late rows of the first days do not affect the last days.
    assert date(2030, 1, 1) in computed[2]
    assert computed[2][-1] < computed[0][-1]
    full.policies.append(first_policies.unionByName(later_policies), Batch("w", 0))
    full.attempts.append(history, Batch("w", 0))
    analyse(spark, full, window_s=3600)
    analyse(spark, full)
    # A version that computes figures differently computes all days again.
    stale = partial(_stale_days, lambda _: set(), lake, lake.windows(60), is_full=False)
    assert stale() == []
    monkeypatch.setattr("lonnymq.pipeline.analyse.FIGURES_VERSION", 99)
    assert stale() == lake.windows(60).days()
    monkeypatch.undo()
    windows = rows_of(lake.windows(60).read(spark))
    assert len(windows) > 100
    assert windows == rows_of(full.windows(60).read(spark))
    assert rows_of(lake.fairness(60).read(spark)) == rows_of(full.fairness(60).read(spark))
    assert rows_of(lake.forecast.read(spark)) == rows_of(full.forecast.read(spark))
    # Why messages waited does not depend on the length of the windows for which it was computed.
    assert rows_of(lake.reasons.read(spark)) == rows_of(full.reasons.read(spark))
    shown = {window_s: summary_of(spark, full, window_s) for window_s in (60, 3600)}
    by_minute, by_hour = (
        {one.channel: (one.reasons, one.wait_p50_ms, one.wait_p95_ms) for one in shown[window_s].tenants}
        for window_s in (60, 3600)
    )
    assert by_minute == by_hour
    assert len({one.main_reason for one in shown[60].tenants}) > 1
    # A percentile over many windows is at most 1/128 away from the exact one.
    waits = exact_waits(history)
    for channel, (_, median, p95) in by_hour.items():
        for found, part in ((median, 0.5), (p95, 0.95)):
            exact = reference_windows.percentile(waits[channel], part)
            assert found == pytest.approx(exact, rel=1 / 128, abs=0), channel
    # So is one that is computed by the query that the reference shows.
    full.windows(60).read(spark).createOrReplaceTempView("windows_60s")
    for row in spark.sql(query_of_the_reference()).collect():
        exact = reference_windows.percentile(waits[row.channel], 0.95)
        assert row.wait_p95_ms == pytest.approx(exact, rel=1 / 128, abs=0), row.channel
    history.unpersist()


def query_of_the_reference() -> str:
    text = (ROOT / "docs" / "reference" / "lake.md").read_text(encoding="utf-8")
    found = re.search(
        r"((?:^ {4}.*\n)+)", text.partition("### Percentiles over several windows")[2], re.MULTILINE
    )
    assert found
    return found[1]


def summary_of(spark: "SparkSession", lake: "Lake", window_s: int) -> "Summary":
    from lonnymq.pipeline.report import summarise

    tables = (lake.windows(window_s), lake.fairness(window_s), lake.reasons, lake.forecast)
    return summarise(*(table.read(spark) for table in tables))


def exact_waits(history: "DataFrame") -> dict[str, list[int]]:
    """How long each attempt of each channel had waited, computed in plain Python."""
    times = ("created_at", "dequeue_at", "leased_at", "ended_at")
    by_channel: dict[str, list[Attempt]] = {}
    for row in history.orderBy("id").collect():
        created, dequeue, leased, ended = (round(row[name].timestamp() * 1000) for name in times)
        one = Attempt(row.channel, created, dequeue, leased, ended, row.outcome, row.attempt, row.message_id)
        by_channel.setdefault(row.channel, []).append(one)
    return {
        channel: [
            reference_windows.waited(message, place)
            for message in reference_windows.messages_of(attempts)
            for place in range(len(message))
        ]
        for channel, attempts in by_channel.items()
    }


def test_a_reason_is_the_first_one_that_applies_in_a_minute(spark: "SparkSession") -> None:
    from lonnymq.pipeline import reasons, schemas

    quiet: dict[str, Any] = {
        **dict.fromkeys(schemas.WINDOWS.names, None),
        "window_s": 60,
        "weight": 1,
        "day": START.date(),
        "backlog_low": 0,
        "backlog_peak": 1,
        "entitled_share": 0.2,
        "excess_share": 0.0,
        "share": 0.1,
        "blame_ms": 0.0,
        "releases": 10,
        "concurrency_peak": 2,
        "wait_total_ms": 1_000,
    }
    noisy = {"share": 0.6, "excess_share": 0.4, "backlog_low": 3, "blame_ms": 500.0}
    rows: list[tuple[str, int, dict[str, Any]]] = [
        ("capped", 0, {**noisy, "max_concurrency": 2, "gap_min_ms": 5, "release_interval_ms": 9}),
        ("limited", 0, {"gap_min_ms": 17, "release_interval_ms": 9, "max_concurrency": 3}),
        ("noisy", 0, noisy),
        ("victim", 0, {}),
        ("victim", 59, {"wait_total_ms": 7}),
        ("victim", 60, {"wait_total_ms": 70}),
    ]
    minutes = spark.createDataFrame(
        [
            {**quiet, "channel": channel, "window_start": START + timedelta(minutes=minute), **more}
            for channel, minute, more in rows
        ],
        schemas.WINDOWS,
    )
    found = {(row.channel, row.hour): [row[name] for name in REASONS] for row in reasons(minutes).collect()}
    later = START + timedelta(hours=1)
    assert {(name, time.astimezone(UTC)): counts for (name, time), counts in found.items()} == {
        ("capped", START): [1_000, 0, 0, 0, 0],
        ("limited", START): [0, 1_000, 0, 0, 0],
        ("noisy", START): [0, 0, 1_000, 0, 0],
        ("victim", START): [0, 0, 0, 1_000, 7],
        ("victim", later): [0, 0, 0, 0, 70],
    }


def test_a_synthetic_history_depends_on_its_seed_and_keeps_its_limits(
    spark: "SparkSession",
) -> None:
    from pyspark.sql import functions as f

    from lonnymq.pipeline import SyntheticHistory, generate
    from lonnymq.pipeline.synthetic import CAP, policies
    from lonnymq.pipeline.windows import windows

    synthetic = SyntheticHistory(rows=2_000, days=1, tenants=4)
    history = generate(spark, synthetic)
    # The partitioning does not matter.
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "5")
    try:
        again = generate(spark, synthetic).collect()
    finally:
        spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
    assert sorted(again) == sorted(history.collect())
    assert len({row.id for row in again}) == 2_000
    assert sorted(again) != sorted(
        generate(spark, SyntheticHistory(rows=2_000, days=1, tenants=4, seed=2)).collect()
    )
    many = SyntheticHistory(rows=500, days=1, tenants=10_000)
    names = {row.channel for row in generate(spark, many).select("channel").distinct().collect()}
    assert max(int(name[7:]) for name in names if name.startswith("tenant-")) > 999
    limited = history.where(f.col("channel").isin("capped", "throttled"))
    figures = (
        windows(limited, policies(spark, synthetic), window_s=3600)
        .groupBy("channel")
        .agg(
            f.sum("gaps_too_small").alias("soon"),
            f.max("concurrency_peak").alias("most"),
            f.min("gap_min_ms").alias("gap"),
        )
    )
    by_channel = {row.channel: row for row in figures.collect()}
    assert by_channel["throttled"].soon == 0
    assert by_channel["throttled"].gap >= synthetic.release_interval_ms
    assert by_channel["capped"].most <= CAP


def test_a_forecast_continues_recent_rates_from_the_waiting_messages(
    spark: "SparkSession", lake: "Lake"
) -> None:
    from pyspark.sql import functions as f

    from lonnymq.pipeline import forecast, schemas

    until = START + timedelta(hours=5)
    names = ("arrivals", "completed", "buried", "cancelled")
    ended = [
        ("a", START + timedelta(hours=1), 1_000, 0, 0, 0),
        ("a", START + timedelta(hours=4), 100, 60, 5, 5),
        ("a", START + timedelta(hours=4, minutes=30), 20, 30, 0, 0),
        ("b", START + timedelta(hours=4), 50, 130, 0, 0),
        ("c", until, 999, 999, 0, 0),
    ]
    windows = spark.createDataFrame(ended, ["channel", "window_start", *names])
    waiting = spark.createDataFrame(
        [
            ("a", until - timedelta(minutes=10), 40, 10, until, until.date()),
            ("b", START, 100, 0, until, until.date()),
            ("b", until + timedelta(hours=1), 7, 0, until, until.date()),
        ],
        schemas.WAITING,
    )
    frame = forecast(windows, waiting, until=until).withColumn("until", f.unix_millis("until"))
    a, b = sorted(frame.collect(), key=lambda row: row.channel)
    # 160 arrived: 100 + 20 that ended, 40 that did not. 100 were served: 60 more per hour. 30 are not leased.
    assert (a.arrived, a.served, a.backlog, a.backlog_in_1_hour, a.backlog_in_24_hours) == (
        160,
        100,
        30,
        90,
        1_470,
    )
    assert a.empty_in_s is None
    # 80 fewer per hour, so a backlog of 100 lasts 75 minutes.
    assert (b.arrived, b.served, b.backlog, b.backlog_in_1_hour, b.backlog_in_6_hours) == (
        50,
        130,
        100,
        20,
        0,
    )
    assert (b.empty_in_s, b.until) == (4_500, round(until.timestamp() * 1000))
    with pytest.raises(InvalidArgument, match="until must be a time with its time zone"):
        forecast(windows, waiting, until=datetime(2030, 1, 1))


def test_a_report_on_a_lake_without_figures_is_an_error(
    spark: "SparkSession", lake: "Lake", tmp_path: Path
) -> None:
    from lonnymq.pipeline.report import NothingToReport
    from lonnymq.pipeline.steps import analyse, report

    Path(lake.path).mkdir()
    assert analyse(spark, lake).days == ()
    with pytest.raises(NothingToReport, match="no window of these days was analysed"):
        report(spark, lake, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
