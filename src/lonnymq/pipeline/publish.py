"""The report as a file."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.report import gather, page
from lonnymq.pipeline.source import Say, silent
from lonnymq.pipeline.windows import checked_window_s
from lonnymq.pipeline.writing import replace_file


def report(
    spark: SparkSession,
    lake: Lake,
    path: str | os.PathLike[str],
    *,
    window_s: int = 60,
    title: str = "Who waited, why, and for how long",
    say: Say = silent,
) -> Path:
    """Write what the lake's figures say as one HTML file, and return where it is."""
    checked_window_s(window_s)
    story = gather(
        lake.windows(window_s).read(spark), lake.fairness(window_s).read(spark), lake.forecast.read(spark)
    )
    say(f"tenants: {len(story.tenants)}, columns of time: {len(story.moments)}")
    target = Path(os.path.abspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, page(story, title))
    return target
