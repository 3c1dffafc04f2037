"""One Spark session for the whole test run, because it takes seconds to start."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lonnymq import Queue
from lonnymq.pipeline.archive import LATE_WORKER, RETRIES
from lonnymq.spark.options import ConnectionOptions

ROOT = Path(__file__).resolve().parents[2]
SPARK_CONF = {
    # Two cores, and a task may fail twice.
    "spark.master": "local[2,3]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # Every plan runs once or twice, so optimising the JVM's code gains nothing. There is so much of it that
    # the JVM would throw some away, and compile it again, if it had no more room than by default.
    "spark.driver.extraJavaOptions": " ".join(
        ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC")
    ),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.session import quiet_logging
    from lonnymq.spark.java import use_java

    use_java()
    builder = SparkSession.builder.appName("tests")
    for name, value in SPARK_CONF.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with quiet_logging():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    look_functions_up_once()
    yield session
    session.stop()


def look_functions_up_once() -> None:
    """Keep what PySpark finds in the JVM by the name of each function: it looks in all jars at every call."""
    from pyspark.sql.functions import builtin

    if not hasattr(builtin._get_jvm_function, "cache_info"):
        builtin._get_jvm_function = cache(builtin._get_jvm_function)


@pytest.fixture
def target(dsn: str) -> ConnectionOptions:
    return ConnectionOptions(dsn)


@pytest.fixture
def history_queue(queue: Queue) -> Queue:
    """A queue that records its full history."""
    queue.set(history="full")
    return queue


def complete_due(queue: Queue, limit: int = 10**9) -> int:
    """Complete the messages that are due, as a worker would; return how many."""
    done = 0
    while done < limit:
        batch = queue.dequeue(min(500, limit - done))
        if not batch:
            break
        queue.complete(list(batch))
        done += len(batch)
    return done


def subprocess_environment() -> dict[str, str]:
    """Return an environment in which Python imports the package and the tests from this checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


def run_to_end(start: Callable[[], Any], seconds: int = 120) -> Any:
    """Run a query to its end and return it; retry if a Python process started too late for Spark."""
    from pyspark.errors import StreamingQueryException

    for is_last in (*(False,) * RETRIES, True):
        query = start()
        try:
            assert query.awaitTermination(seconds)
            break
        except StreamingQueryException as error:
            if is_last or LATE_WORKER not in str(error):
                raise
    return query
