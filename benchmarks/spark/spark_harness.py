"""What the Spark cases measure with: a session, a server, sizes, and rows."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psycopg
from psycopg import conninfo
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.harness import Harness, Median
from benchmarks.server import SETTINGS, Server
from lonnymq import Queue
from lonnymq.embedded import embedded
from lonnymq.pipeline.session import SETTINGS as PIPELINE
from lonnymq.pipeline.session import local_settings
from lonnymq.spark.java import use_java

# Of the session of this process, and of jobs that it submits.
SESSION = {**PIPELINE, **local_settings("local[2]"), "spark.driver.memory": "2g"}
JAR = Path("/usr/share/java/postgresql.jar")
CHANNELS = 1_000
PARTITIONS = 4

Measurements = dict[str, Callable[[], float]]

# Transactions of 1,000 attempts, like those of workers that acknowledge in batches.
FILL = """
do $$
begin
  for v_first in 0..{last} by 1000 loop
    insert into lonnymq.history (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at,
      leased_at, ended_at, worker, content_bytes)
    select n, n % 1000, 'channel-' || n % 1000, 'completed', 1, t - 900, t - 900, t - 200, t,
      'worker-' || n % 8, 100
    from generate_series(v_first, least(v_first + 999, {last})) n,
      lateral (select floor(extract(epoch from now()) * 1000)::bigint + n / 100 as t) t;
    commit;
  end loop;
end
$$
"""


@dataclass(frozen=True)
class Size:
    """How many messages or attempts."""

    rows: int
    # Attempts to analyse before the measurement, to warm up the JVM.
    warm_up_rows: int
    # Attempts of the analysis, which is also measured with a tenth of them.
    analysed_rows: int


SIZES = {
    "smoke": Size(2_000, 500, 20_000),
    "quick": Size(100_000, 10_000, 1_000_000),
    "standard": Size(1_000_000, 100_000, 10_000_000),
    "full": Size(1_000_000, 100_000, 100_000_000),
}


@dataclass(frozen=True)
class SparkHarness:
    core: Harness
    spark: SparkSession
    directory: Path
    size: Size
    jdbc: Path | None

    def messages(self) -> DataFrame:
        """Messages of 100 bytes in many channels, which Spark generates while it writes them."""
        number = f.col("id").cast("string")
        return self.spark.range(0, self.size.rows, 1, PARTITIONS).select(
            f.concat(f.lit("channel-"), (f.col("id") % CHANNELS).cast("string")).alias("channel"),
            f.rpad(f.concat(f.lit('{"id": '), number), 100, " ").cast("binary").alias("content"),
        )

    def measure_in_turns(self, case: str, measurements: Measurements) -> dict[str, Median]:
        """Measure each once to warm up the JVM and Python workers, then all in turns."""
        for name, measure in measurements.items():
            self.core.progress(f"  {case} warm-up {name}: {measure():,.0f}")
        return self.core.measure_in_turns(case, measurements)

    @contextlib.contextmanager
    def queue(self, history_rows: int = 0) -> Iterator[str]:
        """Create a fresh queue with this many rows of history."""
        with self.core.server.database() as dsn:
            with Queue(dsn) as queue:
                queue.install()
            if history_rows:
                self.fill_history(dsn, history_rows)
            yield dsn

    def fill_history(self, dsn: str, rows: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("set synchronous_commit = off")
            connection.execute(FILL.format(last=rows - 1).encode())
            connection.execute("vacuum analyze lonnymq.history")

    def jdbc_url(self, dsn: str) -> str:
        """Convert a connection string to a JDBC URL."""
        parts = conninfo.conninfo_to_dict(dsn)
        credentials = {name: parts[name] for name in ("user", "password") if parts.get(name)}
        query = urlencode({**credentials, "reWriteBatchedInserts": "true"})
        address = f"{parts.get('host', '127.0.0.1')}:{parts.get('port', 5432)}"
        return f"jdbc:postgresql://{address}/{parts['dbname']}?{query}"


@contextlib.contextmanager
def run_server(dsn: str | None, binaries: str) -> Iterator[Server]:
    """Use an existing server, or start a private one on loopback, because JDBC cannot use Unix sockets."""
    if dsn is not None:
        yield Server(dsn)
        return
    with embedded(binaries=binaries, settings=SETTINGS, unix_socket=False) as started:
        yield Server(started.dsn)


def jdbc_jar() -> Path | None:
    return JAR if JAR.exists() else None


@contextlib.contextmanager
def spark_session(jar: Path | None) -> Iterator[SparkSession]:
    use_java()
    builder = SparkSession.builder.master("local[2]").appName("lonnymq benchmark")
    settings = SESSION | ({"spark.jars": str(jar)} if jar else {})
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
