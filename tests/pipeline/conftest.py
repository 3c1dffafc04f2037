"""The Spark session of the test run, configured for tiny frames, and a browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import Browser, chromium
from tests.pipeline.plans import executed_scans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.analyse import AnalyseResult
    from lonnymq.pipeline.lake import Lake


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.session import SMALL_DATA, quiet_logging
    from lonnymq.spark.java import use_java
    from tests.spark.conftest import SPARK_CONF, look_functions_up_once

    use_java()
    # These tests and those of the Spark source share a session; whichever run first start it.
    builder = SparkSession.builder.appName("tests")
    for name, value in SPARK_CONF.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with quiet_logging():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    look_functions_up_once()
    # Only SQL settings can be changed while the session runs.
    settings = {name: value for name, value in SMALL_DATA.items() if name.startswith("spark.sql.")}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


@dataclass(frozen=True)
class HalfAnalysed:
    """A synthetic lake of two days, of which an analysis was asked for the first one."""

    lake: "Lake"
    result: "AnalyseResult"
    # The files that the analysis has read.
    scans: list[str]


@pytest.fixture(scope="session")
def half_analysed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> HalfAnalysed:
    from lonnymq.pipeline.steps import DayRange, Lake, analyse, generate
    from lonnymq.pipeline.synthetic import SyntheticHistory

    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    generate(spark, SyntheticHistory(rows=400, days=2, tenants=2), lake)
    with executed_scans(spark) as scans:
        result = analyse(spark, lake, within=DayRange(until=date(2030, 1, 1)))
    return HalfAnalysed(lake, result, scans)


@pytest.fixture
def lake(tmp_path: Path) -> "Lake":
    from lonnymq.pipeline.lake import Lake

    return Lake(str(tmp_path / "lake"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as program:
        yield Browser(program)
