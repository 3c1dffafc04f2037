"""Writes the report to a file."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from lonnymq.pipeline.atomic_file import replace_file
from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.report import render_page, summarise
from lonnymq.pipeline.source import OnProgress, ignore_progress
from lonnymq.pipeline.windows import check_window_s


def report(
    spark: SparkSession,
    lake: Lake,
    path: str | os.PathLike[str],
    *,
    window_s: int = 60,
    title: str = "Who waited, why, and for how long",
    on_progress: OnProgress = ignore_progress,
) -> Path:
    """Write the lake's figures as one HTML file, and return its path."""
    check_window_s(window_s)
    summary = summarise(
        lake.windows(window_s).read(spark),
        lake.fairness(window_s).read(spark),
        lake.reasons.read(spark),
        lake.forecast.read(spark),
    )
    on_progress(f"tenants: {len(summary.tenants)}, columns of time: {len(summary.periods)}")
    target = Path(os.path.abspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, render_page(summary, title))
    return target
