"""Makes the report: a value that notebooks show, or a file."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from lonnymq.pipeline.atomic_file import replace_file
from lonnymq.pipeline.day_range import ALL_DAYS, DayRange
from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.report import ReportPage, render_page, summarise
from lonnymq.pipeline.source import OnProgress, ignore_progress
from lonnymq.pipeline.windows import check_window_s

TITLE = "Who waited, why, and for how long"


def report_page(
    spark: SparkSession,
    lake: Lake,
    *,
    window_s: int = 60,
    within: DayRange = ALL_DAYS,
    title: str = TITLE,
    on_progress: OnProgress = ignore_progress,
) -> ReportPage:
    """Return the lake's figures as a page; the last expression of a notebook's cell shows it."""
    check_window_s(window_s)
    summary = summarise(
        within.rows(lake.windows(window_s).read(spark)),
        within.rows(lake.fairness(window_s).read(spark)),
        within.rows(lake.reasons.read(spark)),
        lake.forecast.read(spark),
    )
    on_progress(f"tenants: {len(summary.tenants)}, columns of time: {len(summary.periods)}")
    return ReportPage(render_page(summary, title))


def report(
    spark: SparkSession,
    lake: Lake,
    path: str | os.PathLike[str],
    *,
    window_s: int = 60,
    within: DayRange = ALL_DAYS,
    title: str = TITLE,
    on_progress: OnProgress = ignore_progress,
) -> Path:
    """Write the lake's figures, of all days or those `within` a range, as one HTML file; return its path."""
    page = report_page(spark, lake, window_s=window_s, within=within, title=title, on_progress=on_progress)
    target = Path(os.path.abspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, page.html)
    return target
