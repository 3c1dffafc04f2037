"""Traces and metrics of OpenTelemetry, as an application's own exporter sees them."""

import asyncio
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import lonnymq
from lonnymq import Defer, InvalidArgument, NewMessage, Queue, WrongIsolationLevel
from lonnymq.client.aio import AsyncQueue
from lonnymq.telemetry import otel_names as names
from lonnymq.telemetry.tracing import Tracing
from lonnymq.testing import run_until_empty


class Telemetry:
    """The spans that have ended and the metrics, in memory."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader])

    def tracing(self, *, is_child: bool = False) -> Tracing:
        return Tracing(is_child=is_child, tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, name: str = "") -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if name in span.name]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def points(self, metric: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        assert data is not None
        found = [
            one
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for one in scope.metrics
        ]
        return [point for one in found if one.name == metric for point in one.data.data_points]


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    telemetry = Telemetry()
    yield telemetry
    telemetry.tracers.shutdown()
    telemetry.meters.shutdown()


@pytest.fixture
def traced(telemetry: Telemetry, queue: Queue, dsn: str) -> Iterator[Queue]:
    with Queue(dsn, instrumentation=telemetry.tracing()) as traced:
        yield traced


def ids(span: Any) -> tuple[int, int]:
    found = span if hasattr(span, "trace_id") else span.context
    return found.trace_id, found.span_id


def linked(span: ReadableSpan) -> list[tuple[int, int]]:
    return [ids(link.context) for link in span.links]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_message_is_traced_from_its_producer_to_its_end(telemetry: Telemetry, traced: Queue) -> None:
    with telemetry.tracers.get_tracer("test").start_as_current_span("request") as request:
        created = traced.enqueue("acme", {"video": 7}, headers={"x": "1"})
    (message,) = traced.dequeue()
    message.complete()
    enqueue, dequeue, complete = (telemetry.span(name) for name in ("enqueue", "dequeue", "complete"))
    assert message.headers["x"] == "1"
    assert message.headers["traceparent"].split("-")[1] == f"{enqueue.context.trace_id:032x}"
    assert enqueue.parent is not None
    assert ids(enqueue.parent) == ids(request.get_span_context())
    assert linked(dequeue) == linked(complete) == [ids(enqueue)]
    assert [one.kind for one in (enqueue, dequeue, complete)] == [
        SpanKind.PRODUCER,
        SpanKind.CLIENT,
        SpanKind.CLIENT,
    ]
    common = {
        "messaging.system": "lonnymq",
        "messaging.destination.name": "acme",
        "messaging.message.id": str(created.id),
    }
    assert attributes(enqueue) == {
        **common,
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "lonnymq.outcome": "created",
    }
    assert attributes(dequeue) == {
        **common,
        "messaging.operation.name": "dequeue",
        "messaging.operation.type": "receive",
    }
    assert attributes(complete) == {
        **common,
        "messaging.operation.name": "complete",
        "messaging.operation.type": "settle",
    }


def test_an_empty_dequeue_has_no_span(telemetry: Telemetry, traced: Queue) -> None:
    assert not traced.dequeue()
    assert telemetry.spans() == []


def test_a_batch_and_a_bulk_load_have_one_span_each(telemetry: Telemetry, traced: Queue) -> None:
    traced.enqueue_many([NewMessage(channel=name, payload=1) for name in "ab"])
    traced.copy_in(NewMessage(channel="c", payload=n) for n in range(3))
    many, load = telemetry.spans("enqueue")
    assert attributes(many)[names.BATCH_MESSAGE_COUNT] == 2
    assert names.DESTINATION_NAME not in attributes(many)
    assert attributes(load)[names.BATCH_MESSAGE_COUNT] == 3
    assert attributes(load)[names.OUTCOME] == "published"
    batch = traced.dequeue(10)
    assert len(batch) == 5
    traced.complete(batch)
    assert set(linked(telemetry.span("dequeue"))) == {ids(many), ids(load)}
    assert attributes(telemetry.span("complete"))[names.BATCH_MESSAGE_COUNT] == 5


@pytest.mark.parametrize("is_child", [False, True])
def test_an_attempt_is_linked_to_its_producer_or_its_child(
    telemetry: Telemetry, queue: Queue, dsn: str, is_child: bool
) -> None:
    with Queue(dsn, instrumentation=telemetry.tracing(is_child=is_child)) as traced:
        app = lonnymq.App(traced)
        tracer = telemetry.tracers.get_tracer("test")
        seen = []

        @app.task
        def resize(video: int) -> None:
            seen.append(baggage.get_baggage("tenant"))
            tracer.start_span("inside").end()

        token = context.attach(baggage.set_baggage("tenant", "acme"))
        resize.enqueue("acme", 7)
        context.detach(token)
        run_until_empty(app)
    enqueue, process, inside = (telemetry.span(name) for name in ("enqueue", "process resize", "inside"))
    assert seen == ["acme"]
    assert process.kind is SpanKind.CONSUMER
    assert inside.parent is not None
    assert ids(inside.parent) == ids(process)
    if is_child:
        assert process.parent is not None
        assert (ids(process.parent), linked(process)) == (ids(enqueue), [])
    else:
        assert (process.parent, linked(process)) == (None, [ids(enqueue)])
        assert process.context.trace_id != enqueue.context.trace_id
    described = attributes(process)
    assert (described["lonnymq.handler"], described["lonnymq.attempt"]) == ("resize", 1)


def test_an_async_handler_enqueues_within_the_span_of_its_attempt(
    telemetry: Telemetry, queue: Queue, dsn: str
) -> None:
    async def run() -> None:
        async with AsyncQueue(dsn, instrumentation=telemetry.tracing()) as traced:
            app = lonnymq.App(traced)

            @app.task
            async def first() -> None:
                await second.enqueue_async("acme")

            @app.task
            async def second() -> None: ...

            await first.enqueue_async("acme")
            await run_until_empty(app)

    asyncio.run(run())
    first, second = telemetry.span("process first"), telemetry.span("process second")
    inner = telemetry.spans("enqueue")[1]
    assert inner.parent is not None
    assert ids(inner.parent) == ids(first)
    assert linked(second) == [ids(inner)]


def test_a_failed_attempt_is_an_error_and_a_planned_retry_is_not(telemetry: Telemetry, traced: Queue) -> None:
    app = lonnymq.App(traced)

    @app.task(max_attempts=1)
    def fail() -> None:
        raise OSError("no disk")

    @app.task(max_attempts=2)
    def wait() -> None:
        if lonnymq.current_message().attempt == 1:
            raise Defer()

    fail.enqueue("acme")
    wait.enqueue("acme")
    run_until_empty(app, errors="keep")
    failed = telemetry.span("process fail")
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "OSError"
    assert [event.name for event in failed.events] == ["exception"]
    first, second = telemetry.spans("process wait")
    assert [one.status.status_code for one in (first, second)] == [StatusCode.UNSET] * 2
    assert [attributes(one)["lonnymq.attempt"] for one in (first, second)] == [1, 2]
    names_of_calls = {
        attributes(one)["messaging.operation.name"]
        for one in telemetry.spans()
        if one.kind is SpanKind.CLIENT
    }
    # The queue buries a message that is deferred after its last attempt.
    assert names_of_calls == {"dequeue", "defer", "complete"}


def test_a_call_that_fails_is_an_error(telemetry: Telemetry, traced: Queue, connect: Any) -> None:
    with pytest.raises(InvalidArgument):
        traced.enqueue("", 1)
    assert attributes(telemetry.span("enqueue"))["error.type"] == "InvalidArgument"
    traced.enqueue("a", 1)
    (message,) = traced.dequeue()
    connection = connect(autocommit=False)
    connection.execute("set transaction isolation level serializable")
    with pytest.raises(WrongIsolationLevel):
        message.complete(connection=connection)
    assert telemetry.span("complete").status.status_code is StatusCode.ERROR
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_tracing_never_is_the_reason_why_a_message_is_refused(telemetry: Telemetry, traced: Queue) -> None:
    """Headers that leave no room for a trace context stay as they are."""
    full = {"n": "x" * (8192 - len('{"n": ""}'))}
    traced.enqueue("a", 1, headers=full)
    assert traced.dequeue()[0].headers == full
    assert linked(telemetry.span("dequeue")) == []


def test_a_broken_context_in_the_headers_is_ignored(
    telemetry: Telemetry, traced: Queue, queue: Queue
) -> None:
    for value in ("", "garbage", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff" * 1000):
        queue.enqueue("a", 1, headers={"traceparent": value, "tracestate": value, "baggage": value})
    assert len(traced.dequeue(10)) == 4
    assert linked(telemetry.span("dequeue")) == []


def test_metrics_count_and_time_by_operation_and_not_by_channel(telemetry: Telemetry, traced: Queue) -> None:
    traced.enqueue_many([NewMessage(channel=f"c{n}", payload=n) for n in range(10)])
    traced.complete(traced.dequeue(10))
    app = lonnymq.App(traced)

    @app.task(max_attempts=1)
    def fail() -> None:
        raise OSError("no disk")

    fail.enqueue("acme")
    run_until_empty(app, errors="keep")
    assert sum(point.value for point in telemetry.points("messaging.client.sent.messages")) == 11
    assert sum(point.value for point in telemetry.points("messaging.client.consumed.messages")) == 11
    durations = telemetry.points("messaging.client.operation.duration")
    counts = {point.attributes["messaging.operation.name"]: point.count for point in durations}
    assert counts == {"enqueue": 2, "dequeue": 2, "complete": 1, "defer": 1}
    (process,) = telemetry.points("messaging.process.duration")
    assert process.attributes["error.type"] == "OSError"
    assert process.explicit_bounds == names.DURATION_BOUNDARIES
    keys = {key for point in [*durations, process] for key in point.attributes}
    assert not keys & {"messaging.destination.name", "messaging.message.id"}


def test_without_an_sdk_nothing_is_added_to_messages(queue: Queue, dsn: str) -> None:
    """The API alone makes no spans that are recorded."""
    with Queue(dsn, instrumentation=Tracing()) as traced:
        traced.enqueue("a", 1)
    assert queue.dequeue()[0].headers_json is None


def test_tracing_is_pickled_unless_it_has_providers_of_its_own(telemetry: Telemetry) -> None:
    assert isinstance(pickle.loads(pickle.dumps(Tracing(is_child=True))), Tracing)
    with pytest.raises(TypeError, match="cannot be sent to other processes"):
        pickle.dumps(telemetry.tracing())
