"""Publishes bulk loads of many parts, by name or as batches of a stream."""

from collections.abc import Callable, Mapping

from lonnymq.calls.message import PUBLISH
from lonnymq.calls.statement import Call, Rows, call, function
from lonnymq.model import Published, PublishOutcome

STREAM_PUBLISH = function(
    "stream_publish",
    "outcome, created, duplicates",
    p_stream="text",
    p_batch="bigint",
    p_parts="uuid[]",
    p_counts="bigint[]",
)
DISCARD = function("stage_discard", p_publication="text", p_parts="uuid[]")


def publish(publication: str, parts: Mapping[str, int]) -> Call[Published]:
    """Publish parts, with their numbers of messages, in the order in which the messages are to be created."""
    return call(PUBLISH, publication, parts.keys(), parts.values(), decode=_published(publication))


def publish_batch(stream: str, batch: int, parts: Mapping[str, int]) -> Call[Published]:
    return call(STREAM_PUBLISH, stream, batch, parts.keys(), parts.values(), decode=_published(stream))


def publication_of(stream: str) -> str:
    """Return the name of the publication under which rows of a stream are staged."""
    return f"stream {stream}"


def discard(publication: str, parts: Mapping[str, int]) -> Call[int]:
    return call(DISCARD, publication, parts.keys(), decode=lambda rows: int(rows[0][0]))


def _published(name: str) -> Callable[[Rows], Published]:
    def decode(rows: Rows) -> Published:
        outcome, created, duplicates = rows[0]
        return Published(PublishOutcome(outcome), created, duplicates, name)

    return decode
