"""One Spark session for the whole run; all tests that need it are in one group, so there is one JVM."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pyspark = pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Frames are tiny here: compiling takes far longer than running.
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/pipeline" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    from lonnymq.pipeline.session import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = session("local[2]", SETTINGS)
    yield spark
    spark.stop()
