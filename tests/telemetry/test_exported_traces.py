"""Spans and metrics of real producers and worker processes reach a collector over the network."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lonnymq import ExitCode, Queue
from tests.forked import ForkedProgram

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "tests.telemetry.traced_shop"


class Collector:
    """Receives what OTLP exporters send by HTTP on the loopback interface."""

    def __init__(self) -> None:
        collector = self
        self.spans: list[Any] = []
        self.metrics: set[str] = set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/traces":
                    traces = ExportTraceServiceRequest.FromString(body)
                    for resource in traces.resource_spans:
                        for scope in resource.scope_spans:
                            collector.spans.extend(scope.spans)
                else:
                    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                        for scope in resource.scope_metrics:
                            collector.metrics.update(one.name for one in scope.metrics)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def named(self, name: str) -> list[Any]:
        return [span for span in list(self.spans) if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    collector.thread.start()
    yield collector
    collector.server.shutdown()
    collector.thread.join()
    collector.server.server_close()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def text_of(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


@pytest.mark.slow
def test_traces_lead_from_a_producer_through_worker_processes(
    queue: Queue, dsn: str, collector: Collector
) -> None:
    environment = {
        **os.environ,
        "LONNYMQ_DSN": dsn,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "NO_PROXY": "127.0.0.1",
    }
    assert ForkedProgram(PROGRAM, env=environment, cwd=ROOT).wait(120) == 0
    command = ("lonnymq", "work", f"{PROGRAM}:app", "--processes", "2")
    worker = ForkedProgram(*command, env=environment, cwd=ROOT)
    try:
        wait_for(lambda: len(collector.named("process notify")) == 6 and len(collector.named("smtp")) == 6)
        wait_for(lambda: "messaging.process.duration" in collector.metrics)
    finally:
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(60)
    assert code == ExitCode.FINISHED
    assert queue.status().waiting == 0
    by_id = {span.span_id: span for span in collector.spans}
    for handler, inside in (("resize", "ffmpeg"), ("notify", "smtp")):
        processed = collector.named(f"process {handler}")
        assert len(processed) == 6
        producers = [by_id[link.span_id] for span in processed for link in span.links]
        assert Counter(span.name for span in producers) == {"enqueue": 6}
        assert len({span.span_id for span in producers}) == 6
        for span, producer in zip(processed, producers, strict=True):
            # One message, on both sides of the queue.
            assert text_of(span)["messaging.message.id"] == text_of(producer)["messaging.message.id"]
        assert {span.parent_span_id for span in collector.named(inside)} == {
            span.span_id for span in processed
        }
    enqueued_inside = [span for span in collector.named("enqueue") if span.parent_span_id]
    assert {by_id[span.parent_span_id].name for span in enqueued_inside} == {"ffmpeg"}
    ended = [link.span_id for span in collector.named("complete") for link in span.links]
    assert set(ended) <= {span.span_id for span in collector.named("enqueue")}
    assert {"messaging.client.sent.messages", "messaging.client.operation.duration"} <= collector.metrics
