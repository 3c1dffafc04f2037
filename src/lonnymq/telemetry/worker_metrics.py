"""Renders what a worker has counted as Prometheus metrics. Needs the extra "prometheus"."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import lonnymq
from lonnymq.errors import InvalidArgument
from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.queue_metrics import encode, family
from lonnymq.worker.metrics import PROCESS_BOUNDS, WAIT_BOUNDS, Histogram, WorkerFigures

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from lonnymq.telemetry.prometheus_names import MetricName
    from lonnymq.worker import Worker

__all__ = ["WorkerCollector", "encode_worker_metrics", "worker_metrics"]


class WorkerCollector:
    """A collector for a registry of your own: `REGISTRY.register(WorkerCollector(worker))`.

    Register it before the worker starts. For a worker with one process.
    """

    def __init__(self, worker: "Worker") -> None:
        if worker.settings.processes != 1:
            raise InvalidArgument("a worker with several processes shows its metrics with --health-port")
        self._metrics = worker.measure()

    def describe(self) -> "Iterator[Metric]":
        yield from map(family, names.WORKER_METRICS)

    def collect(self) -> "Iterator[Metric]":
        return worker_metrics(self._metrics.figures())


def encode_worker_metrics(figures: WorkerFigures, accept: str) -> tuple[bytes, str]:
    """Return metrics as text, and its content type, in the format that the header `accept` asks for."""
    return encode(worker_metrics(figures), accept)


def worker_metrics(figures: WorkerFigures) -> "Iterator[Metric]":
    """Yield the metrics of a worker's processes."""
    attempts = [
        ((task, outcome), number)
        for task, counts in figures.tasks.items()
        for outcome, number in counts.outcomes.items()
    ]
    yield family(names.WORKER_ATTEMPTS_TOTAL, attempts)
    took = [((task,), counts.process) for task, counts in figures.tasks.items()]
    yield _histograms(names.WORKER_PROCESS_SECONDS, PROCESS_BOUNDS, took)
    yield _histograms(names.WORKER_WAIT_SECONDS, WAIT_BOUNDS, [((), figures.wait)])
    slots = [((names.BUSY,), figures.busy), ((names.FREE,), figures.slots - figures.busy)]
    yield family(names.WORKER_SLOTS, slots)
    yield family(names.WORKER_PROCESSES, [((), figures.processes)])
    if figures.last_fetch_at is not None:
        yield family(names.WORKER_LAST_FETCH, [((), figures.last_fetch_at)])
    yield family(names.WORKER_INFO, [((lonnymq.__version__,), 1)])


def _histograms(
    metric: "MetricName", bounds: Sequence[float], histograms: Iterable[tuple[Sequence[str], Histogram]]
) -> "Metric":
    made = family(metric)
    limits = [*map(str, bounds), "+Inf"]
    for values, histogram in histograms:
        labels = dict(zip(metric.labels, values, strict=True))
        total = 0
        for limit, count in zip(limits, histogram.counts, strict=True):
            total += count
            made.add_sample(f"{metric.name}_bucket", {**labels, "le": limit}, total)
        made.add_sample(f"{metric.name}_count", labels, total)
        made.add_sample(f"{metric.name}_sum", labels, histogram.total)
    return made
