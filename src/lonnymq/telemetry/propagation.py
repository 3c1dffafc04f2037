"""Carries the context of a trace from a producer to a worker, in the headers of messages."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext

from lonnymq.calls.headers import encode_headers
from lonnymq.errors import InvalidArgument
from lonnymq.model import NewMessage

# By default, the SDK keeps no more links of a span than 128.
MAX_LINKS = 100


def inject(messages: Iterable[NewMessage]) -> Iterable[NewMessage]:
    """Return the messages with the current context in their headers, if there is a context."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return _with_headers(messages, carrier) if carrier else messages


def extract(message: Any) -> Context:
    """Return the context of the producer of a message; an empty one if its headers have none."""
    headers = message.headers if getattr(message, "headers_json", None) is not None else {}
    return propagate.extract(headers, context=Context())


def producers(messages: Iterable[Any]) -> list[Link]:
    """Return a link to each span that enqueued some of these messages."""
    found: dict[tuple[int, int], SpanContext] = {}
    for message in messages:
        span_context = trace.get_current_span(extract(message)).get_span_context()
        if span_context.is_valid:
            found[span_context.trace_id, span_context.span_id] = span_context
            if len(found) == MAX_LINKS:
                break
    return [Link(span_context) for span_context in found.values()]


def _with_headers(messages: Iterable[NewMessage], carrier: Mapping[str, str]) -> Iterator[NewMessage]:
    for message in messages:
        headers = getattr(message, "headers", None)
        if headers is None:
            headers = {}
        merged = {**headers, **carrier} if isinstance(headers, Mapping) else headers
        yield replace(message, headers=merged) if _is_valid(merged) else message


def _is_valid(headers: Any) -> bool:
    """Return whether a message can have these headers: tracing must not be why a message is refused."""
    try:
        encode_headers(headers)
    except InvalidArgument:
        return False
    return True
