"""What the cases stand on: a session, a server, sizes, and rows."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psycopg
from psycopg import conninfo
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.bench import Bench, Figure
from benchmarks.server import SETTINGS, Server
from lonnymq import Queue
from lonnymq.embedded import embedded
from lonnymq.spark.java import use_java

JAR = Path("/usr/share/java/postgresql.jar")
CHANNELS = 1_000
PARTITIONS = 4

Measured = dict[str, Callable[[], float]]

# Transactions of 1,000 attempts, as workers that acknowledge in groups would make them.
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
    """How many messages and attempts; the analysis also takes ten times as many."""

    rows: int
    # Analysed once for a warm JVM, before it is measured.
    warm: int


SIZES = {
    "smoke": Size(2_000, 500),
    "quick": Size(100_000, 10_000),
    "standard": Size(1_000_000, 100_000),
    "full": Size(1_000_000, 100_000),
}


@dataclass(frozen=True)
class Ground:
    bench: Bench
    spark: SparkSession
    directory: Path
    size: Size
    jdbc: Path | None

    def messages(self) -> DataFrame:
        """Rows of 100 bytes in many channels, made by Spark as they are written."""
        number = f.col("id").cast("string")
        return self.spark.range(0, self.size.rows, 1, PARTITIONS).select(
            f.concat(f.lit("channel-"), (f.col("id") % CHANNELS).cast("string")).alias("channel"),
            f.rpad(f.concat(f.lit('{"id": '), number), 100, " ").cast("binary").alias("content"),
        )

    def interleaved(self, case: str, measured: Measured) -> dict[str, Figure]:
        """Each once for a warm JVM and warm Python workers, uncounted; then in turns."""
        for name, measure in measured.items():
            self.bench.progress(f"  {case} warm-up {name}: {measure():,.0f}")
        return self.bench.interleaved(case, measured)

    @contextlib.contextmanager
    def queue(self, rows_of_history: int = 0) -> Iterator[str]:
        """A fresh queue, with so much history."""
        with self.bench.server.database() as dsn:
            with Queue(dsn) as queue:
                queue.install()
            if rows_of_history:
                self.fill_history(dsn, rows_of_history)
            yield dsn

    def fill_history(self, dsn: str, rows: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("set synchronous_commit = off")
            connection.execute(FILL.format(last=rows - 1).encode())
            connection.execute("vacuum analyze lonnymq.history")

    def jdbc_url(self, dsn: str) -> str:
        """The same place in the words of JDBC."""
        parts = conninfo.conninfo_to_dict(dsn)
        words = {name: parts[name] for name in ("user", "password") if parts.get(name)}
        query = urlencode({**words, "reWriteBatchedInserts": "true"})
        place = f"{parts.get('host', '127.0.0.1')}:{parts.get('port', 5432)}"
        return f"jdbc:postgresql://{place}/{parts['dbname']}?{query}"


@contextlib.contextmanager
def serve(dsn: str | None, binaries: str) -> Iterator[Server]:
    """An existing server, or a private one that listens on loopback: JDBC knows no sockets."""
    if dsn is not None:
        yield Server(dsn)
        return
    with embedded(binaries=binaries, settings=SETTINGS, unix_socket=False) as started:
        yield Server(started.dsn)


def jdbc_jar() -> Path | None:
    return JAR if JAR.exists() else None


@contextlib.contextmanager
def session(jar: Path | None) -> Iterator[SparkSession]:
    use_java()
    builder = SparkSession.builder.master("local[2]").appName("lonnymq benchmark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        **({"spark.jars": str(jar)} if jar else {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
