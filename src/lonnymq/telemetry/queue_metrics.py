"""Renders a look at a queue as Prometheus metrics. Needs the extra "prometheus"."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import lonnymq
from lonnymq.errors import install_advice
from lonnymq.model import ChannelStatus, FleetPart, WorkerState
from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.monitor import Look, Reading
from lonnymq.telemetry.prometheus_names import MetricName

try:
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.metrics_core import Metric
except ImportError as error:
    raise ImportError(f"metrics need prometheus_client: {install_advice('prometheus')}") from error

# Values of the labels, and the value of the sample.
Samples = Iterable[tuple[Sequence[str], float]]


def family(metric: MetricName, samples: Samples = ()) -> Metric:
    """Return a metric with its samples; a histogram's are added by its caller."""
    made = Metric(metric.name.removesuffix("_total"), metric.help, metric.kind)
    for values, number in samples:
        made.add_sample(metric.name, dict(zip(metric.labels, values, strict=True)), float(number))
    return made


def queue_metrics(look: Look, now: float) -> Iterator[Metric]:
    """Yield the metrics of a queue; if the look failed, only that it did. `now` is by the monotonic clock."""
    reading = look.reading
    yield _single(names.UP, reading is not None)
    if reading is None:
        return
    version = str(reading.pulse.version)
    yield family(names.INFO, [((lonnymq.__version__, version), 1)])
    yield _single(names.LOOK_SECONDS, look.took_s)
    yield _single(names.LOOK_AGE_SECONDS, max(0.0, now - look.ended_at))
    yield from _pulse_metrics(reading)
    yield from _fleet_metrics(reading)
    yield family(names.CRON_OVERDUE_SECONDS, [((name,), lag) for name, lag in reading.crons.items()])
    yield family(names.READER_LAG_SECONDS, [((name,), lag) for name, lag in reading.reader_lags.items()])
    yield family(names.TABLE_BYTES, [((table.name,), table.bytes) for table in reading.tables])
    yield family(names.TABLE_DEAD_ROWS, [((table.name,), table.dead_rows) for table in reading.tables])
    yield from _channel_metrics(reading)


def describe_queue() -> Iterator[Metric]:
    """Yield the metrics of a queue without samples, so that a registry knows their names."""
    yield from map(family, names.QUEUE_METRICS)


class Snapshot:
    """Metrics that were collected before, as a collector."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> list[Metric]:
        return self._metrics


def encode(metrics: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """Return metrics as text, and its content type, in the format that the header `accept` asks for."""
    encoder, content_type = choose_encoder(accept)
    return encoder(Snapshot(metrics)), content_type


def _single(metric: MetricName, number: float) -> Metric:
    return family(metric, [((), number)])


def _pulse_metrics(reading: Reading) -> Iterator[Metric]:
    pulse = reading.pulse
    scheduled = min(pulse.scheduled, pulse.waiting)
    states = {
        names.WAITING: pulse.waiting - scheduled,
        names.SCHEDULED: scheduled,
        names.LEASED: pulse.leased,
        names.DEAD: pulse.dead,
    }
    yield family(names.MESSAGES, [((state,), count) for state, count in states.items()])
    singles: dict[MetricName, float] = {
        names.CHANNELS: pulse.channels,
        names.COUNTS_EXACT: pulse.is_exact,
        names.TURN_LAG_SECONDS: pulse.turn_lag_s,
        names.DUE_CHANNELS: pulse.due_channels,
        names.DEMAND: pulse.demand,
        names.DUE_COMPLETE: pulse.is_due_complete,
        names.EXPIRED_LEASES: pulse.expired,
        names.SLEEPERS: pulse.sleepers,
        names.UNFOLDED_WAKES: pulse.unfolded_wakes,
        names.CREATED_TOTAL: pulse.created_total,
        names.LEASED_TOTAL: pulse.leased_total,
        names.ENDED_TOTAL: pulse.ended_total,
        names.HISTORY_OVERFLOW_ROWS: pulse.history_overflow,
        names.OLDEST_TRANSACTION_SECONDS: pulse.oldest_transaction_s or 0.0,
    }
    for metric, number in singles.items():
        yield _single(metric, number)


def _fleet_metrics(reading: Reading) -> Iterator[Metric]:
    fleet = {state: reading.fleet.get(state, FleetPart()) for state in WorkerState}
    yield family(names.WORKERS, [((state,), part.processes) for state, part in fleet.items()])
    present = [part for state, part in fleet.items() if state is not WorkerState.GONE]
    busy, slots = sum(part.busy for part in present), sum(part.slots for part in present)
    yield family(names.SLOTS, [((names.BUSY,), busy), ((names.FREE,), slots - busy)])


def _channel_metrics(reading: Reading) -> Iterator[Metric]:
    figures = {
        name: (0, 0, 0.0, 0, 0)
        if one is None
        else (one.waiting, one.leased, _lag_s(one, reading.pulse.at), one.released, one.waited_ms / 1000)
        for name, one in reading.channels.items()
    }
    for index, metric in enumerate(names.CHANNEL_METRICS):
        yield family(metric, [((name,), numbers[index]) for name, numbers in figures.items()])


def _lag_s(channel: ChannelStatus, now: datetime) -> float:
    return 0.0 if channel.ready_at is None else max(0.0, (now - channel.ready_at).total_seconds())
