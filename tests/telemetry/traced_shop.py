"""A traced application: `python -m tests.telemetry.traced_shop` enqueues, `lonnymq work` processes.

The environment says where its spans and metrics go.
"""

import os

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import lonnymq
from lonnymq.telemetry.tracing import Tracing

tracers = TracerProvider()
tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=100))
trace.set_tracer_provider(tracers)
meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=500)])
metrics.set_meter_provider(meters)

app = lonnymq.App(lonnymq.Queue(os.environ["LONNYMQ_DSN"], instrumentation=Tracing()))


@app.task
def resize(video: int) -> None:
    with trace.get_tracer("shop").start_as_current_span("ffmpeg", attributes={"pid": os.getpid()}):
        notify.options(key=f"video {video}").enqueue("mail", video)


@app.task
async def notify(video: int) -> None:
    trace.get_tracer("shop").start_span("smtp").end()


if __name__ == "__main__":
    for number in range(6):
        resize.enqueue("acme", number)
    tracers.shutdown()
    meters.shutdown()
