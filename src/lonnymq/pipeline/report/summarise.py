"""Summarises the lake's tables for a report. Spark aggregates, so the driver receives only what is shown."""

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.errors import LonnyError
from lonnymq.pipeline import histograms
from lonnymq.pipeline.reasons import REASONS as COLUMNS
from lonnymq.pipeline.report.summary import (
    REASONS,
    BacklogForecast,
    Period,
    Summary,
    Tenant,
    TenantPeriod,
)

# Tenants in the page, and those with charts over time.
MAX_TENANTS, MAX_CHARTED = 5_000, 40
MAX_PERIODS = 120
SUMS = (
    *("arrivals", "releases", "completed", "failures", "retries", "buried", "expired"),
    *("wait_total_ms", "run_total_ms", "gaps_too_small"),
)
PEAKS = (
    *("wait_max_ms", "backlog_peak", "concurrency_peak", "max_concurrency"),
    *("release_interval_ms", "release_burst", "weight"),
)


class NothingToReport(LonnyError):
    """The lake has no windows yet: run the step `analyse` first."""


def summarise(
    windows: DataFrame,
    fairness: DataFrame,
    reasons: DataFrame,
    forecast: DataFrame,
    *,
    made_at: datetime | None = None,
) -> Summary:
    """Return the summary of these tables."""
    whole = windows.agg(
        f.min(f.unix_millis("window_start")), f.max(f.unix_millis("window_start")), f.max("window_s")
    ).first()
    if whole is None or whole[0] is None:
        raise NothingToReport(
            "there is nothing to report, because no window of these days was analysed: run the step analyse"
            " first"
        )
    begin_ms, last_ms, window_s = whole
    period_s = period_length(last_ms - begin_ms, window_s)
    tenants, totals = _tenants(windows, reasons)
    # The tenant that is blamed most has a chart, too.
    blamed = sorted(tenants, key=lambda one: -one.blame_ms)[:1]
    names = list(dict.fromkeys(tenant.channel for tenant in (*tenants[:MAX_CHARTED], *blamed)))
    forecasts = _forecasts(forecast)
    return Summary(
        begin=_time(begin_ms),
        end=_time(last_ms + window_s * 1000),
        window_s=window_s,
        period_s=period_s,
        tenants=tuple(tenants),
        periods=tuple(_periods(windows, fairness, period_s)),
        tenant_periods=tuple(_tenant_periods(windows, names, period_s)),
        forecasts=tuple(one for _, _, one in forecasts),
        until=forecasts[0][0] if forecasts else None,
        over_s=forecasts[0][1] if forecasts else 3600,
        made_at=made_at or datetime.now(UTC),
        **totals,
    )


def period_length(span_ms: int, window_s: int) -> int:
    """Return the seconds of one column on the page: whole windows, and at most `MAX_PERIODS` columns."""
    windows = span_ms // (window_s * 1000) + 1
    return window_s * -(-windows // MAX_PERIODS)


def _tenants(windows: DataFrame, why: DataFrame) -> tuple[list[Tenant], dict[str, Any]]:
    by_channel = (
        windows.groupBy("channel")
        .agg(
            *(f.sum(name).alias(name) for name in SUMS),
            *(f.max(name).alias(name) for name in PEAKS),
            f.min("gap_min_ms").alias("gap_min_ms"),
            f.count_if("is_over_cap").alias("windows_over_cap"),
        )
        .join(_percentiles(windows, "channel"), "channel", "left")
        .join(
            why.groupBy("channel").agg(
                *(f.sum(name).alias(name) for name in ("entitled_releases", "blame_ms", *COLUMNS))
            ),
            "channel",
            "left",
        )
    )
    by_channel = by_channel.cache()
    try:
        is_capped, is_limited = f.col("max_concurrency").isNotNull(), f.col("release_interval_ms").isNotNull()
        totals = by_channel.agg(
            f.count("*").alias("channels"),
            *(f.sum(name).alias(name) for name in ("releases", "completed", "failures", "buried", "retries")),
            f.sum("wait_total_ms").alias("wait_total_ms"),
            f.count_if(is_capped & (f.col("windows_over_cap") == 0)).alias("caps_held"),
            f.count_if(is_capped & (f.col("windows_over_cap") > 0)).alias("caps_broken"),
            f.count_if(is_limited & (f.col("gaps_too_small") == 0)).alias("rates_held"),
            f.count_if(is_limited & (f.col("gaps_too_small") > 0)).alias("rates_broken"),
        ).first()
        assert totals is not None
        rows = by_channel.orderBy(f.desc("wait_total_ms"), "channel").limit(MAX_TENANTS).collect()
    finally:
        by_channel.unpersist()
    releases = max(int(totals["releases"]), 1)
    everyone = _percentiles(windows.withColumn("all", f.lit(1)), "all").first()
    percentiles = {} if everyone is None else everyone.asDict()
    percentiles.pop("all", None)
    return [_tenant(row.asDict(), releases) for row in rows], {**totals.asDict(), **percentiles}


def _percentiles(windows: DataFrame, *by: str) -> DataFrame:
    """Return the median and the 95th percentile of each group's waiting times, from its added histograms."""
    longest = windows.groupBy(*by).agg(f.max("wait_max_ms").alias("longest"))
    return (
        histograms.add(windows, "wait_histogram", *by)
        .join(longest, [*by])
        .select(
            *by,
            *(
                f.least(histograms.percentile(f.col("wait_histogram"), percent), "longest").alias(
                    f"wait_p{percent}_ms"
                )
                for percent in (50, 95)
            ),
        )
    )


def _tenant(row: dict[str, Any], releases: int) -> Tenant:
    reasons = {reason: row.pop(column) or 0 for column, reason in zip(COLUMNS, REASONS, strict=True)}
    entitled = row.pop("entitled_releases") or 0.0
    optional = ("max_concurrency", "release_interval_ms", "gap_min_ms")
    known = {name: value for name, value in row.items() if value is not None or name in optional}
    return Tenant(
        **known, reasons=reasons, share=row["releases"] / releases, entitled_share=entitled / releases
    )


def _period_start(period_s: int) -> Column:
    start = f.unix_millis("window_start")
    return (start - f.pmod(start, f.lit(period_s * 1000))).alias("start")


def _periods(windows: DataFrame, fairness: DataFrame, period_s: int) -> list[Period]:
    counts = ("arrivals", "completed", "deferred", "expired", "buried", "retries")
    counted = windows.groupBy(_period_start(period_s)).agg(*(f.sum(name).alias(name) for name in counts))
    # The lowest index of the period's windows; a mean would hide it.
    worst = fairness.groupBy(_period_start(period_s)).agg(f.min("jain_index").alias("jain_index"))
    rows = counted.join(worst, "start", "left").orderBy("start").collect()
    return [
        Period(
            start=_time(row.start),
            jain_index=row.jain_index,
            **{name: int(row[name]) for name in counts},
        )
        for row in rows
    ]


def _tenant_periods(windows: DataFrame, channels: list[str], period_s: int) -> list[TenantPeriod]:
    shown = windows.where(f.col("channel").isin(channels)).withColumn("start", _period_start(period_s))
    rows = (
        shown.groupBy("channel", "start")
        .agg(
            f.max("backlog_peak").alias("backlog_peak"),
            f.max("share").alias("share"),
            f.sum("releases").alias("releases"),
        )
        .join(_percentiles(shown, "channel", "start"), ["channel", "start"], "left")
        .orderBy("channel", "start")
        .collect()
    )
    return [
        TenantPeriod(
            row.channel, _time(row.start), row.wait_p95_ms, row.backlog_peak, row.share, row.releases
        )
        for row in rows
    ]


def _forecasts(forecast: DataFrame) -> list[tuple[datetime, int, BacklogForecast]]:
    """Return the forecasts of the backlogs that are largest now or in 24 hours."""
    size = f.greatest("backlog", "backlog_in_24_hours")
    rows = (
        forecast.where(size > 0)
        .withColumn("until_ms", f.unix_millis("until"))
        .orderBy(f.desc(size), "channel")
        .limit(10)
        .collect()
    )
    return [
        (
            _time(row.until_ms),
            row.over_s,
            BacklogForecast(
                row.channel,
                row.backlog,
                row.arrivals_per_hour,
                row.served_per_hour,
                row.backlog_in_1_hour,
                row.backlog_in_6_hours,
                row.backlog_in_24_hours,
                row.empty_in_s,
            ),
        )
        for row in rows
    ]


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
