"""The Spark session of a pipeline run: the active one, that of spark-submit, or a new one on this machine."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files

from pyspark.sql import SparkSession

from lonnymq.spark.java import use_java
from lonnymq.spark.source import register

# Settings of a session started here; an active session is used as it is.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Recording where each column was created, for error messages, takes a quarter of a small analysis.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Windows are aggregated in sorted order, so that only one at a time is in memory.
    "spark.sql.execution.replaceHashWithSortAgg": "true",
    # A JVM does not compile larger methods. With this limit, Spark divides them: a third of the time of a
    # large analysis.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}

# Settings for small data, where compiling a plan takes longer than running it.
SMALL_DATA = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

# log4j reads this variable when the JVM starts; a level set in the session comes too late.
LOGGING_FILE = "LOG4J_CONFIGURATION_FILE"
# With one of these, the user has configured logging.
LOGGING_VARIABLES = (LOGGING_FILE, "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_SUBMIT_OPTS")


def get_session(master: str | None = None, settings: dict[str, str] | None = None) -> SparkSession:
    """Return the active session, or start one on `master` (by default: spark-submit's, else this machine)."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    use_java()
    builder = SparkSession.builder.appName("lonnymq pipeline")
    if master is None and not _is_submitted():
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    for name, value in {**SETTINGS, **local_settings(master), **(settings or {})}.items():
        builder = builder.config(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    with quiet_logging():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if _is_submitted():
        register(spark)
    return spark


@contextmanager
def session_scope(
    master: str | None = None, settings: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a session, and stop it at the end unless it was active before."""
    is_new = SparkSession.getActiveSession() is None
    spark = get_session(master, settings)
    try:
        yield spark
    finally:
        if is_new:
            spark.stop()


@contextmanager
def quiet_logging() -> Iterator[None]:
    """Make a Spark that starts in this context log only errors, unless the user has configured logging."""
    if any(name in os.environ for name in LOGGING_VARIABLES):
        yield
        return
    with as_file(files(__package__) / "log4j2.properties") as path:
        os.environ[LOGGING_FILE] = str(path)
        try:
            yield
        finally:
            del os.environ[LOGGING_FILE]


def local_settings(master: str | None) -> dict[str, str]:
    """Return settings for a master on this machine: loopback addresses, and small partitions.

    A cluster has its own settings, and its executors need the driver's real address.
    """
    if _is_submitted() or master is None or not master.startswith("local"):
        return {}
    return {
        "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
        # Many partitions, of which Spark joins the small ones, bound the memory of a task. With as few as
        # above, an analysis of ten million attempts ran out of 2 GB.
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "256",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }


def _is_submitted() -> bool:
    """Whether spark-submit started this process; its gateway then exists and its master is chosen."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
