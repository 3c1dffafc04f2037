"""Generates a synthetic history of any size: seeded, the same on any cluster, with problems to find in it.

Most rows belong to steady tenants, a few large and many small, busier at some hours. `noisy` arrives in
bursts that take long to work off, `rival` in smaller bursts at the same times, and other tenants wait
meanwhile. `capped` keeps its slots full, `throttled` is released at its rate limit, and `failing` needs three
attempts or is buried.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from lonnymq.errors import invalid
from lonnymq.model import ChannelPolicy
from lonnymq.pipeline import schemas

CAP = 4
BURST_S = 1200
RETRY_MS = 30_000
MAX_ATTEMPTS = 3
# Which of every hundred rows belong to which part of the history.
PARTS = {
    "steady": (0, 70),
    "noisy": (70, 80),
    "rival": (80, 85),
    "capped": (85, 90),
    "throttled": (90, 94),
    "failing": (94, 100),
}


@dataclass(frozen=True, kw_only=True)
class SyntheticHistory:
    """How much history to generate; `rows` are attempts."""

    rows: int
    days: int = 7
    tenants: int = 20
    seed: int = 1
    start: datetime = datetime(2030, 1, 1, tzinfo=UTC)

    def __post_init__(self) -> None:
        for name, most in (("rows", 10**12), ("days", 3660), ("tenants", 10**6)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise invalid(name, value, f"between 1 and {most}")
        if type(self.seed) is not int or not -(2**63) <= self.seed < 2**63:
            raise invalid("seed", self.seed, "a whole number of 64 bits")
        if self.start.tzinfo is None:
            raise invalid("start", self.start, "a time with its time zone")

    @property
    def start_ms(self) -> int:
        return round(self.start.timestamp() * 1000)

    @property
    def span_ms(self) -> int:
        return self.days * schemas.DAY_MS

    def rows_of(self, part: str) -> int:
        """Return the most rows that a part may have."""
        low, high = PARTS[part]
        return max(1, -(-self.rows // 100) * (high - low))

    @property
    def release_interval_ms(self) -> int:
        return max(1, self.span_ms * 9 // (10 * self.rows_of("throttled")))


def generate(spark: SparkSession, synthetic: SyntheticHistory) -> DataFrame:
    """Return finished attempts in the form of the lake's table `attempts`."""
    number = f.col("number")
    part = number % 100
    lows = {name: low for name, (low, _) in PARTS.items()}
    rows = spark.range(synthetic.rows).select(
        f.col("id").alias("number"),
        *(_random(synthetic.seed, salt).alias(f"u{salt}") for salt in range(6)),
    )
    attempt = f.when(part < lows["noisy"], _steady(synthetic))
    attempt = attempt.when(part < lows["rival"], _bursting(synthetic, "noisy", BURST_S))
    # Half as many in half the time, so both are served at the same rate while both have a backlog.
    attempt = attempt.when(part < lows["capped"], _bursting(synthetic, "rival", BURST_S // 2))
    attempt = attempt.when(part < lows["throttled"], _capped(synthetic))
    attempt = attempt.when(part < lows["failing"], _throttled(synthetic)).otherwise(_failing(synthetic))
    attempts = rows.select("number", "u5", attempt.alias("attempt")).select("number", "u5", "attempt.*")
    start = f.lit(synthetic.start_ms)
    times = ("created", "dequeue", "leased", "ended")
    history = attempts.select(
        (number + 1).alias("id"),
        (number / 50).cast("long").alias("xid"),
        f.coalesce("message_id", number + 1).alias("message_id"),
        "channel",
        "outcome",
        "attempt",
        *(f.timestamp_millis(start + f.col(f"{time}_ms")).alias(f"{time}_at") for time in times),
        f.concat(f.lit("worker-"), (f.col("u5") * 8 + 1).cast("int").cast("string")).alias("worker"),
        f.when(f.col("outcome").isin("deferred", "buried"), f.lit("the upstream said 503")).alias("error"),
        (100 + f.col("u5") * 900).cast("int").alias("content_bytes"),
        f.lit(None).cast("binary").alias("content"),
        f.lit(None).cast("binary").alias("state"),
        f.lit(None).cast("string").alias("headers"),
    )
    return schemas.attempts_from_history(history)


def policies(spark: SparkSession, synthetic: SyntheticHistory) -> DataFrame:
    """Return the policies of the channels of that history."""
    day = synthetic.start.astimezone(UTC).date()
    allowed = {
        **dict.fromkeys(("noisy", "rival", "failing"), ChannelPolicy()),
        "capped": ChannelPolicy(max_concurrency=CAP),
        "throttled": ChannelPolicy(release_interval_ms=synthetic.release_interval_ms),
        **{_tenant(n): ChannelPolicy(weight=3 if n == 0 else 1) for n in range(synthetic.tenants)},
    }
    rows = [{"channel": name, **vars(policy), "day": day} for name, policy in allowed.items()]
    return spark.createDataFrame(rows, schemas.POLICIES)


def _tenant(number: int) -> str:
    return f"tenant-{number + 1:03d}"


def _random(seed: int, salt: int) -> Column:
    """Uniform in [0, 1); depends only on the row's number, so the partitioning does not matter."""
    return (f.xxhash64("id", f.lit(seed), f.lit(salt)).bitwiseAND(f.lit(2**53 - 1))) / f.lit(float(2**53))


def _index(part: str) -> Column:
    """The number of a row within its part."""
    low, high = PARTS[part]
    number = f.col("number")
    return f.floor(number / 100) * (high - low) + (number % 100 - low)


def _exponential(mean_ms: Column | float, salt: int) -> Column:
    return f.floor(-f.log(1 - f.col(f"u{salt}")) * mean_ms).cast("long")


def _attempt(
    channel: Column,
    created: Column,
    wait: Column,
    run: Column,
    *,
    dequeue: Column | None = None,
    outcome: Column | None = None,
    attempt: Column | None = None,
    message_id: Column | None = None,
) -> Column:
    created = created.cast("long")
    dequeue = created if dequeue is None else dequeue.cast("long")
    leased = dequeue + f.greatest(wait.cast("long"), f.lit(0))
    return f.struct(
        channel.alias("channel"),
        created.alias("created_ms"),
        dequeue.alias("dequeue_ms"),
        leased.alias("leased_ms"),
        (leased + 1 + f.greatest(run.cast("long"), f.lit(0))).alias("ended_ms"),
        (f.lit("completed") if outcome is None else outcome).alias("outcome"),
        (f.lit(1) if attempt is None else attempt).cast("int").alias("attempt"),
        (f.lit(None) if message_id is None else message_id).cast("long").alias("message_id"),
    )


def _steady(synthetic: SyntheticHistory) -> Column:
    # The power makes a few tenants large; the sine makes some hours of the day busy.
    tenant = f.floor(f.pow(f.col("u0"), 2.5) * synthetic.tenants).cast("int") + 1
    channel = f.format_string("tenant-%03d", tenant)
    turns = 2 * math.pi * synthetic.days
    moment = (f.col("u1") + f.sin(f.col("u1") * turns) * (0.8 / turns)) * synthetic.span_ms
    mean = f.when(_is_in_burst(synthetic, moment), 900.0).otherwise(60.0)
    fails = f.col("u4") < 0.01
    return _attempt(
        channel,
        moment,
        _exponential(mean, 2),
        _exponential(120.0, 3),
        outcome=f.when(fails, f.lit("deferred")).otherwise(f.lit("completed")),
    )


def _bursts(synthetic: SyntheticHistory) -> tuple[int, int]:
    """Return how many bursts there are, and their distance in milliseconds."""
    count = 3 * synthetic.days
    return count, synthetic.span_ms // count


def _is_in_burst(synthetic: SyntheticHistory, moment: Column) -> Column:
    _, apart_ms = _bursts(synthetic)
    return (moment % apart_ms).between(apart_ms // 2, apart_ms // 2 + BURST_S * 1000)


def _bursting(synthetic: SyntheticHistory, channel: str, served_in_s: int) -> Column:
    """Attempts in bursts that arrive five times as fast as they are served."""
    count, apart_ms = _bursts(synthetic)
    index = _index(channel)
    place = f.floor(index / count) / f.lit(max(1, synthetic.rows_of(channel) / count))
    begin = (index % count) * apart_ms + apart_ms // 2
    created = begin + place * (served_in_s * 200)
    leased = begin + place * (served_in_s * 1000)
    return _attempt(f.lit(channel), created, leased - created, _exponential(150.0, 3))


def _capped(synthetic: SyntheticHistory) -> Column:
    index = _index("capped")
    period = synthetic.span_ms * CAP / synthetic.rows_of("capped")
    leased = f.floor(index / CAP) * period + (index % CAP) * (period / CAP)
    run = f.least(f.lit(period * 0.95 - 2), f.lit(600_000.0)) * (0.4 + 0.6 * f.col("u3"))
    wait = _exponential(min(period, 60_000.0), 2)
    return _attempt(f.lit("capped"), f.floor(leased) - wait, wait, run)


def _throttled(synthetic: SyntheticHistory) -> Column:
    apart = synthetic.span_ms / synthetic.rows_of("throttled")
    leased = f.floor((_index("throttled") + f.col("u0") * 0.1) * apart)
    wait = _exponential(min(3 * apart, 120_000.0), 2)
    return _attempt(f.lit("throttled"), leased - wait, wait, _exponential(80.0, 3))


def _failing(synthetic: SyntheticHistory) -> Column:
    index = _index("failing")
    attempt = index % MAX_ATTEMPTS + 1
    message = f.floor(index / MAX_ATTEMPTS)
    created = f.floor(message * (synthetic.span_ms / max(1, synthetic.rows_of("failing") // MAX_ATTEMPTS)))
    last = f.when(f.col("u4") < 0.5, f.lit("buried")).otherwise(f.lit("completed"))
    return _attempt(
        f.lit("failing"),
        created,
        _exponential(100.0, 2),
        _exponential(40.0, 3),
        dequeue=created + (attempt - 1) * RETRY_MS,
        outcome=f.when(attempt < MAX_ATTEMPTS, f.lit("deferred")).otherwise(last),
        attempt=attempt,
        message_id=f.lit(10**12) + message,
    )
