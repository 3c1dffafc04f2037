"""From the lake's tables to a story: aggregated by Spark, so that only what is shown comes to the driver."""

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.errors import LonnyError
from lonnymq.pipeline.report import story
from lonnymq.pipeline.report.story import Moment, Outlook, Reading, Story, Tenant

MOST_TENANTS = 40
MOST_STRETCHES = 120
# Of all service, beyond its share: less of it explains nobody's waiting.
NOISY_SHARE = 0.25
SUMS = (
    *("arrivals", "releases", "completed", "failures", "retries", "buried", "expired"),
    *("wait_total_ms", "run_total_ms", "gaps_too_small"),
)
PEAKS = (
    *("wait_max_ms", "backlog_peak", "concurrency_peak", "max_concurrency"),
    *("release_interval_ms", "release_burst", "weight"),
)


class NothingToReport(LonnyError):
    """The lake has no windows yet."""


def gather(
    windows: DataFrame, fairness: DataFrame, forecast: DataFrame, *, made_at: datetime | None = None
) -> Story:
    """Return the story of these tables."""
    whole = windows.agg(
        f.min(f.unix_millis("window_start")), f.max(f.unix_millis("window_start")), f.max("window_s")
    ).first()
    if whole is None or whole[0] is None:
        raise NothingToReport("there is nothing to report: no window was analysed")
    begin_ms, last_ms, window_s = whole
    stretch_s = stretch(last_ms - begin_ms, window_s)
    tenants, shown = _tenants(windows, fairness)
    names = [tenant.channel for tenant in tenants]
    outlooks = _outlooks(forecast)
    return Story(
        begin=_time(begin_ms),
        end=_time(last_ms + window_s * 1000),
        window_s=window_s,
        stretch_s=stretch_s,
        tenants=tuple(tenants),
        moments=tuple(_moments(windows, fairness, stretch_s)),
        readings=tuple(_readings(windows, names, stretch_s)),
        outlooks=tuple(outlook for _, _, outlook in outlooks),
        until=outlooks[0][0] if outlooks else None,
        over_s=outlooks[0][1] if outlooks else 3600,
        made_at=made_at or datetime.now(UTC),
        **shown,
    )


def stretch(span_ms: int, window_s: int) -> int:
    """The seconds of one column on the page: whole windows, and not more columns than can be told apart."""
    windows = span_ms // (window_s * 1000) + 1
    return window_s * -(-windows // MOST_STRETCHES)


def _tenants(windows: DataFrame, fairness: DataFrame) -> tuple[list[Tenant], dict[str, Any]]:
    names = ("window_start", "noisiest_channel", "noisiest_excess_share")
    noisy = fairness.select(*names, f.col("releases").alias("all_releases"))
    told = windows.join(noisy, "window_start", "left").withColumn("reason", _reason())
    sums = [f.sum(name).alias(name) for name in SUMS]
    peaks = [f.max(name).alias(name) for name in PEAKS]
    reasons = [
        f.sum(f.when(f.col("reason") == reason, f.col("wait_total_ms")).otherwise(0)).alias(f"reason_{place}")
        for place, reason in enumerate(story.REASONS)
    ]
    entitled = f.sum(f.col("entitled_share") * f.col("all_releases"))
    each = told.groupBy("channel").agg(
        *sums,
        *peaks,
        *reasons,
        # Weighted by releases, so that a quiet hour says little.
        (f.sum(f.col("wait_p95_ms") * f.col("releases")) / f.sum("releases"))
        .cast("long")
        .alias("wait_p95_ms"),
        entitled.alias("entitled"),
        f.min("gap_min_ms").alias("gap_min_ms"),
        f.count_if("is_over_cap").alias("windows_over_cap"),
        f.sum("blame_ms").alias("blame_ms"),
    )
    each = each.cache()
    try:
        is_capped, is_limited = f.col("max_concurrency").isNotNull(), f.col("release_interval_ms").isNotNull()
        totals = each.agg(
            f.count("*").alias("channels"),
            *(f.sum(name).alias(name) for name in ("releases", "completed", "failures", "buried", "retries")),
            f.sum("wait_total_ms").alias("wait_total_ms"),
            f.count_if(is_capped & (f.col("windows_over_cap") == 0)).alias("caps_held"),
            f.count_if(is_capped & (f.col("windows_over_cap") > 0)).alias("caps_broken"),
            f.count_if(is_limited & (f.col("gaps_too_small") == 0)).alias("rates_held"),
            f.count_if(is_limited & (f.col("gaps_too_small") > 0)).alias("rates_broken"),
        ).first()
        assert totals is not None
        rows = each.orderBy(f.desc("wait_total_ms"), "channel").limit(MOST_TENANTS).collect()
    finally:
        each.unpersist()
    releases = max(int(totals["releases"]), 1)
    return [_tenant(row.asDict(), releases) for row in rows], totals.asDict()


def _reason() -> Column:
    """Why this window's messages had waited: what held them back first."""
    is_capped = f.col("concurrency_peak") >= f.col("max_concurrency")
    is_limited = f.col("gap_min_ms") < f.col("release_interval_ms") * 2
    is_disturbed = (f.col("noisiest_channel") != f.col("channel")) & (
        f.col("noisiest_excess_share") >= NOISY_SHARE
    )
    return (
        f.when(is_capped, f.lit(story.CAP))
        .when(is_limited, f.lit(story.RATE))
        .when((f.col("excess_share") > 0) & (f.col("backlog_low") > 0), f.lit(story.BURST))
        .when(is_disturbed, f.lit(story.NEIGHBOUR))
        .otherwise(f.lit(story.WORKERS))
    )


def _tenant(row: dict[str, Any], releases: int) -> Tenant:
    reasons = {reason: row.pop(f"reason_{place}") or 0 for place, reason in enumerate(story.REASONS)}
    entitled = row.pop("entitled") or 0.0
    optional = ("max_concurrency", "release_interval_ms", "gap_min_ms")
    known = {name: value for name, value in row.items() if value is not None or name in optional}
    return Tenant(
        **known, reasons=reasons, share=row["releases"] / releases, entitled_share=entitled / releases
    )


def _stretch_start(stretch_s: int) -> Column:
    start = f.unix_millis("window_start")
    return (start - f.pmod(start, f.lit(stretch_s * 1000))).alias("start")


def _moments(windows: DataFrame, fairness: DataFrame, stretch_s: int) -> list[Moment]:
    counts = ("arrivals", "completed", "deferred", "expired", "buried", "retries")
    counted = windows.groupBy(_stretch_start(stretch_s)).agg(*(f.sum(name).alias(name) for name in counts))
    # The worst of its windows: a mean would hide it.
    judged = fairness.groupBy(_stretch_start(stretch_s)).agg(f.min("jain_index").alias("jain_index"))
    rows = counted.join(judged, "start", "left").orderBy("start").collect()
    return [
        Moment(
            start=_time(row.start),
            jain_index=row.jain_index,
            **{name: int(row[name]) for name in counts},
        )
        for row in rows
    ]


def _readings(windows: DataFrame, channels: list[str], stretch_s: int) -> list[Reading]:
    rows = (
        windows.where(f.col("channel").isin(channels))
        .groupBy("channel", _stretch_start(stretch_s))
        .agg(
            f.max("wait_p95_ms").alias("wait_p95_ms"),
            f.max("backlog_peak").alias("backlog_peak"),
            f.max("share").alias("share"),
            f.sum("releases").alias("releases"),
        )
        .orderBy("channel", "start")
        .collect()
    )
    return [
        Reading(row.channel, _time(row.start), row.wait_p95_ms, row.backlog_peak, row.share, row.releases)
        for row in rows
    ]


def _outlooks(forecast: DataFrame) -> list[tuple[datetime, int, Outlook]]:
    """The largest backlogs, now or tomorrow."""
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
            Outlook(
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
