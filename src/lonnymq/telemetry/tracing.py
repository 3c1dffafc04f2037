"""OpenTelemetry: spans and metrics of a queue and its workers. Needs the extra "otel"."""

import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lonnymq.errors import install_advice

try:
    from opentelemetry import context as contexts
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ImportError(f"tracing needs OpenTelemetry: {install_advice('otel')}") from error
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode

from lonnymq.model import Created, NewMessage, Published, TenantCreated
from lonnymq.telemetry import otel_names as names
from lonnymq.telemetry.propagation import extract, inject, producers
from lonnymq.worker.handler import Defer

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter, MeterProvider
    from opentelemetry.trace import TracerProvider

    from lonnymq.client.enqueueing import Enqueued
    from lonnymq.model import Lease, LeasedMessage

Attributes = dict[str, str | int]


class Tracing:
    """The instrumentation of a queue: `lonnymq.Queue(dsn, instrumentation=Tracing())`.

    The span of an attempt is linked to the span that enqueued its message; with `is_child` it is a child of
    it, in the same trace. Without providers, OpenTelemetry's global ones are used.
    """

    def __init__(
        self,
        *,
        is_child: bool = False,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
    ) -> None:
        self._is_child = is_child
        self._has_providers = tracer_provider is not None or meter_provider is not None
        self._tracer = trace.get_tracer("lonnymq", tracer_provider=tracer_provider)
        meter = metrics.get_meter("lonnymq", meter_provider=meter_provider)
        self._sent = meter.create_counter(*names.SENT_MESSAGES)
        self._consumed = meter.create_counter(*names.CONSUMED_MESSAGES)
        self._operation_duration = _histogram(meter, names.OPERATION_DURATION)
        self._process_duration = _histogram(meter, names.PROCESS_DURATION)

    def __reduce__(self) -> Any:
        """Pickle it for a worker's processes, each of which has global providers of its own."""
        if self._has_providers:
            raise TypeError("Tracing with providers of its own cannot be sent to other processes")
        return partial(Tracing, is_child=self._is_child), ()

    def enqueue(self, messages: Iterable[NewMessage]) -> "Generator[Iterable[NewMessage], Enqueued, None]":
        """Trace a call that enqueues, and give its context to the messages."""
        attributes = _operation(names.ENQUEUE, names.SEND)
        started = time.perf_counter()
        count = len(messages) if isinstance(messages, Sequence) else 0
        span = self._tracer.start_span(
            names.ENQUEUE, kind=SpanKind.PRODUCER, attributes={**attributes, **_describe(messages)}
        )
        token = contexts.attach(trace.set_span_in_context(span))
        try:
            result = yield inject(messages)
            count = _describe_result(span, result)
        except BaseException as error:
            _fail(span, error, attributes)
            raise
        finally:
            contexts.detach(token)
            span.end()
            self._operation_duration.record(time.perf_counter() - started, attributes)
            self._sent.add(count, attributes)

    def dequeued(self, messages: "Sequence[LeasedMessage]", started_ns: int) -> None:
        """Trace a dequeue that leased messages."""
        attributes = _operation(names.DEQUEUE, names.RECEIVE)
        self._trace_call(attributes, messages, started_ns, None)
        self._consumed.add(len(messages), attributes)

    async def process(
        self, handler: str, messages: "Sequence[LeasedMessage]", call: Callable[[], Awaitable[None]]
    ) -> None:
        """Trace an attempt, around the worker's middleware."""
        attributes = {**_operation(names.PROCESS, names.PROCESS), names.HANDLER: handler}
        started = time.perf_counter()
        origin = extract(messages[0])
        is_child = self._is_child and len(messages) == 1
        # Without a parent, what the producer sent beside it, such as baggage, remains.
        base = origin if is_child else trace.set_span_in_context(INVALID_SPAN, origin)
        more = {names.ATTEMPT: messages[0].attempt} if len(messages) == 1 else {}
        span = self._tracer.start_span(
            f"{names.PROCESS} {handler}",
            context=base,
            kind=SpanKind.CONSUMER,
            links=[] if is_child else producers(messages),
            attributes={**attributes, **_describe(messages), **more},
        )
        token = contexts.attach(trace.set_span_in_context(span, base))
        try:
            await call()
        except Defer as deferred:
            if deferred.error is not None:
                _fail(span, deferred, attributes)
            raise
        except BaseException as error:
            _fail(span, error, attributes)
            raise
        finally:
            contexts.detach(token)
            span.end()
            self._process_duration.record(time.perf_counter() - started, attributes)

    def settled(
        self, action: str, leases: "Sequence[Lease]", started_ns: int, error: BaseException | None
    ) -> None:
        """Trace a call that ended attempts."""
        self._trace_call(_operation(action, names.SETTLE), leases, started_ns, error)

    def _trace_call(
        self, attributes: Attributes, messages: Sequence[Any], started_ns: int, error: BaseException | None
    ) -> None:
        """Make the span of a call that has just ended."""
        span = self._tracer.start_span(
            str(attributes[names.OPERATION_NAME]),
            kind=SpanKind.CLIENT,
            links=producers(messages),
            attributes={**attributes, **_describe(messages)},
            start_time=started_ns,
        )
        if error is not None:
            _fail(span, error, attributes)
        ended_ns = time.time_ns()
        span.end(ended_ns)
        self._operation_duration.record(max(0, ended_ns - started_ns) / 1e9, attributes)


def _histogram(meter: "Meter", described: tuple[str, str, str]) -> "Histogram":
    boundaries = names.DURATION_BOUNDARIES
    return meter.create_histogram(*described, explicit_bucket_boundaries_advisory=boundaries)


def _operation(name: str, kind: str) -> Attributes:
    """Return the attributes of spans and metrics. Channels are not among them: there may be a million."""
    return {names.SYSTEM: names.LONNYMQ, names.OPERATION_NAME: name, names.OPERATION_TYPE: kind}


def _describe(messages: Iterable[Any]) -> Attributes:
    """Return the attributes of a span that say which messages it is about."""
    if not isinstance(messages, Sequence):
        return {}
    found: Attributes = {}
    if len(messages) != 1:
        found[names.BATCH_MESSAGE_COUNT] = len(messages)
    elif (message_id := getattr(messages[0], "id", None)) is not None:
        found[names.MESSAGE_ID] = str(message_id)
    channels = {getattr(message, "channel", None) for message in messages}
    if len(channels) == 1 and isinstance(channel := channels.pop(), str):
        found[names.DESTINATION_NAME] = channel
    return found


def _describe_result(span: Span, result: "Enqueued") -> int:
    """Add what became of the messages to the span, and return how many there were."""
    if isinstance(result, Published):
        span.set_attribute(names.OUTCOME, result.outcome)
        count = result.created + result.duplicates
        span.set_attribute(names.BATCH_MESSAGE_COUNT, count)
        return count
    if len(result) == 1 and isinstance(created := result[0], Created | TenantCreated):
        span.set_attribute(names.OUTCOME, created.outcome)
        identity = created.id if isinstance(created, Created) else created.uuid
        if identity is not None:
            span.set_attribute(names.MESSAGE_ID, str(identity))
    return len(result)


def _fail(span: Span, error: BaseException, attributes: Attributes) -> None:
    attributes[names.ERROR_TYPE] = kind = type(error).__qualname__
    span.set_attribute(names.ERROR_TYPE, kind)
    span.record_exception(error)
    span.set_status(StatusCode.ERROR, f"{kind}: {error}")
