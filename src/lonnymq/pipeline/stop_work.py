"""Stops what a session does: signals set an event, and while it is set, jobs are cancelled."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lonnymq.pipeline.archive import QUERY_NAME

JOB_TAG = "lonnymq follow"
POLL_S = 0.2


@contextmanager
def set_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Make SIGTERM and Ctrl-C set the event; only the main thread may change what signals do.

    Spark's own handler of Ctrl-C talks to the JVM, which fails while this thread waits for an answer of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def cancel_when(stopping: threading.Event, spark: SparkSession) -> Iterator[None]:
    """While the event is set, cancel the jobs of this thread and the archive's stream."""
    finished = threading.Event()

    def cancel() -> None:
        while not finished.wait(POLL_S):
            # The JVM may have ended by the same signal.
            with suppress(Py4JError, OSError):
                if stopping.is_set():
                    spark.sparkContext.cancelJobsWithTag(JOB_TAG)
                    for query in spark.streams.active:
                        if query.name == QUERY_NAME:
                            query.stop()

    canceller = threading.Thread(target=cancel, name="lonnymq follow stop", daemon=True)
    spark.sparkContext.addJobTag(JOB_TAG)
    canceller.start()
    try:
        yield
    finally:
        finished.set()
        canceller.join()
        with suppress(Py4JError, OSError):
            spark.sparkContext.removeJobTag(JOB_TAG)
