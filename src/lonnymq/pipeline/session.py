"""The Spark session of a pipeline run: the caller's, spark-submit's, or one on this machine."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files

from pyspark.sql import SparkSession

from lonnymq.spark.java import use_java
from lonnymq.spark.source import hide_dsn, register

# Of a session that we start; one that is there is used as it is.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # To note where each column was made, for errors, takes a quarter of a small analysis.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Windows are aggregated in the order in which they were sorted: one at a time in memory.
    "spark.sql.execution.replaceHashWithSortAgg": "true",
}

# For little data: compiling a plan then takes longer than running it.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

# Read by log4j when the JVM starts, so a level that is set in the session comes too late.
LOGGING = "LOG4J_CONFIGURATION_FILE"
LOGGING_CHOSEN = (LOGGING, "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_SUBMIT_OPTS")


def session(master: str | None = None, settings: dict[str, str] | None = None) -> SparkSession:
    """Return the active session, or start one; `master` is where, unless spark-submit has said so."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    use_java()
    builder = SparkSession.builder.appName("lonnymq pipeline")
    if master is None and not _is_submitted():
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    for name, value in {**SETTINGS, **settings_of(master), **(settings or {})}.items():
        builder = builder.config(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    with quiet():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    hide_dsn(spark)
    if _is_submitted():
        register(spark)
    return spark


@contextmanager
def borrowed(master: str | None = None, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """Lend a session for a while, and end it unless it was there before."""
    is_ours = SparkSession.getActiveSession() is None
    spark = session(master, settings)
    try:
        yield spark
    finally:
        if is_ours:
            spark.stop()


@contextmanager
def quiet() -> Iterator[None]:
    """Have a Spark that starts meanwhile say errors only, unless somebody has chosen what it logs."""
    if any(name in os.environ for name in LOGGING_CHOSEN):
        yield
        return
    with as_file(files(__package__) / "log4j2.properties") as choice:
        os.environ[LOGGING] = str(choice)
        try:
            yield
        finally:
            del os.environ[LOGGING]


def settings_of(master: str | None) -> dict[str, str]:
    """Return what suits a master on this machine: loopback, and few shuffle partitions for its few cores.

    On a cluster its own settings count, and its executors must find the driver's real address.
    """
    if _is_submitted() or master is None or not master.startswith("local"):
        return {}
    return {
        "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }


def _is_submitted() -> bool:
    """Whether a gateway is there already, and with it somebody else's choice of master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
