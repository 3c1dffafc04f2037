"""Keeps a lake and its figures minutes behind the queue: runs `archive` and `analyse` again and again.

Each step records what it has done in the commit that does it. So a round may be cut off anywhere: the next
one, of this process or another, continues there. A round computes only days that have new attempts, among
them past days to which late attempts belong.
"""

import threading
import time
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from lonnymq.client.sync.queue import Queue
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import ConnectionLost, LoginRefused, invalid, is_permanent
from lonnymq.pipeline.analyse import analyse
from lonnymq.pipeline.archive import archive_new, only_archive_of
from lonnymq.pipeline.lake import Lake, LakeFormat
from lonnymq.pipeline.maintain import NotAnalysed, delete_replaced, has_many_files, maintain
from lonnymq.pipeline.source import OnProgress, Source, ignore_progress, require_classic
from lonnymq.pipeline.stop_work import cancel_when, set_by_signals
from lonnymq.pipeline.windows import check_window_s

MAX_INTERVAL_S = 86_400.0
# After this many failures in a row, while the database answers, another attempt would fail too.
RETRIES = 3
# How often replaced files are deleted, and how long readers that have opened a table may still need them.
TIDY_EVERY_S = 3_600.0
KEEP_REPLACED = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class FollowSettings:
    """A round begins `interval_s` after the one before, or when that has ended; `is_once` ends after one."""

    window_s: int = 60
    interval_s: float = 60.0
    keep: timedelta | None = None
    checkpoint: str | None = None
    is_once: bool = False

    def __post_init__(self) -> None:
        check_window_s(self.window_s)
        if not 0 <= self.interval_s <= MAX_INTERVAL_S:
            raise invalid("interval_s", self.interval_s, f"from 0 to {MAX_INTERVAL_S:.0f} seconds")


@dataclass(frozen=True)
class FollowResult:
    """How many rounds were completed, and how many attempts they archived."""

    rounds: int
    rows: int


def follow(
    spark: SparkSession,
    source: Source,
    lake: Lake,
    settings: FollowSettings | None = None,
    *,
    stopping: threading.Event | None = None,
    on_progress: OnProgress = ignore_progress,
) -> FollowResult:
    """Run until SIGTERM, Ctrl-C or `stopping`. A round that is stopped is completed by the next run."""
    require_classic(spark, "follow", "writes the batches of its stream in functions of this process")
    if LakeFormat(lake.form) is not LakeFormat.DELTA:
        raise invalid("form", lake.form, "delta, because each round would compute all days of plain Parquet")
    stopping = stopping or threading.Event()
    follower = _Follower(spark, source, lake, settings or FollowSettings(), stopping, on_progress)
    with only_archive_of(lake), set_by_signals(stopping), cancel_when(stopping, spark):
        return follower.run()


class _Follower:
    def __init__(
        self,
        spark: SparkSession,
        source: Source,
        lake: Lake,
        settings: FollowSettings,
        stopping: threading.Event,
        on_progress: OnProgress,
    ) -> None:
        self._spark = spark
        self._source = source
        self._lake = lake
        self._settings = settings
        self._stopping = stopping
        self._on_progress = on_progress
        self._backoff = Backoff(first_s=1.0, max_s=60.0)
        self._rounds = self._rows = self._failures = 0
        self._tidied_at: float | None = None

    def run(self) -> FollowResult:
        while not self._stopping.is_set():
            began_at = time.monotonic()
            try:
                self._run_round()
            except Exception as error:  # noqa: BLE001
                # A job that was cancelled fails in many ways.
                if not self._stopping.is_set():
                    self._recover(error)
                continue
            self._backoff.reset()
            self._failures = 0
            if self._settings.is_once:
                break
            self._stopping.wait(max(0.0, self._settings.interval_s - (time.monotonic() - began_at)))
        return FollowResult(self._rounds, self._rows)

    def _run_round(self) -> None:
        began_at = time.monotonic()
        archived = archive_new(
            self._spark,
            self._source,
            self._lake,
            checkpoint=self._settings.checkpoint,
            keep=self._settings.keep,
            on_progress=self._on_progress,
        )
        self._rows += archived.rows
        if archived.rows:
            # The checkpoint has a position in the database as it is now. Another failover is an error again.
            self._source = replace(self._source, rebase=False)
        if self._stopping.is_set():
            return
        analysed = analyse(
            self._spark, self._lake, window_s=self._settings.window_s, on_progress=self._on_progress
        )
        self._tidy()
        self._rounds += 1
        self._on_progress(
            f"round {self._rounds}: attempts archived: {archived.rows:,}, days computed:"
            f" {len(analysed.days)}, in {time.monotonic() - began_at:.0f} s; {self._lag()}"
        )

    def _recover(self, error: Exception) -> None:
        """Wait until a round may succeed; raise the error if it will not.

        The first round fails at once, because its settings may be wrong.
        """
        if self._rounds == 0 or is_permanent(error):
            raise error
        if self._is_database_away():
            self._on_progress("the database does not answer; waiting for it")
            while self._is_database_away() and not self._stopping.wait(self._backoff.next_s()):
                pass
            return
        self._failures += 1
        if self._failures > RETRIES:
            raise error
        self._on_progress(f"a round failed and is repeated: {str(error).strip().partition(chr(10))[0][:300]}")
        self._stopping.wait(self._backoff.next_s())

    def _is_database_away(self) -> bool:
        try:
            with Queue(self._source.dsn, schema=self._source.schema) as queue:
                queue.history.lag(limit=1)
        except LoginRefused:
            return False
        except ConnectionLost:
            return True
        return False

    def _lag(self) -> str:
        with Queue(self._source.dsn, schema=self._source.schema) as queue:
            lag_s = queue.history.lag().get(self._source.reader, 0.0)
        return f"the lake is {lag_s:.0f} s behind" if lag_s else "the lake is up to date"

    def _tidy(self) -> None:
        """Once an hour, delete replaced files of tables that each round replaces, and join small ones."""
        now = time.monotonic()
        if self._tidied_at is not None and now - self._tidied_at < TIDY_EVERY_S:
            return
        self._tidied_at = now
        delete_replaced(self._lake, KEEP_REPLACED)
        if has_many_files(self._lake.attempts):
            try:
                maintain(self._lake, on_progress=self._on_progress)
            except NotAnalysed as error:
                self._on_progress(f"files are not joined: {error}")
