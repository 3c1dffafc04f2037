"""A small HTTP server for scrapes and probes: GET only, a request per connection, everything bounded."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from lonnymq.texts import one_line

LOGGER = logging.getLogger("lonnymq.http")

TEXT = "text/plain; charset=utf-8"
NO_STORE = {"cache-control": "no-store"}


@dataclass(frozen=True)
class Page:
    """The answer to a request."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[str, str, Mapping[str, str]], Awaitable[Page]]

MAX_CONNECTIONS = 64
MAX_HEAD_BYTES = 16 * 1024
# How long a client may take to send its request, and to read the answer.
CLIENT_S = 5.0
# How long an answer may take to be made.
ANSWER_S = 30.0


@asynccontextmanager
async def serve_http(answer: Answer, host: str, port: int) -> AsyncIterator[tuple[str, int]]:
    """Answer requests while the block runs; yield the address. Port 0 is any free one."""
    # In the order in which they came.
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    answered: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(connections) >= MAX_CONNECTIONS:
            # Connections on which nothing is asked must neither keep out a probe nor end one.
            oldest = next((one for one in connections if one not in answered), next(iter(connections)))
            connections.pop(oldest).transport.abort()
        connections[task] = writer
        try:
            await _converse(answer, reader, writer, lambda: answered.add(task))
        except asyncio.CancelledError:
            # The server closes. asyncio would log it as an error.
            pass
        finally:
            answered.discard(task)
            connections.pop(task, None)
            writer.transport.abort()

    server = await asyncio.start_server(connected, host, port, limit=MAX_HEAD_BYTES)
    try:
        name = server.sockets[0].getsockname()
        yield str(name[0]), int(name[1])
    finally:
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)


async def _converse(
    answer: Answer,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    asked: Callable[[], None],
) -> None:
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(CLIENT_S):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                head = b""
        request = _parse(head)
        if request is None:
            page, method = Page(400, b"this is not an HTTP request that is served here\n"), ""
        else:
            method, path, headers = request
            asked()
            try:
                async with asyncio.timeout(ANSWER_S):
                    page = await answer(method, path, headers)
            except TimeoutError:
                page = Page(503, b"no answer in time\n")
            except Exception:
                LOGGER.exception("%s failed", one_line(f"{method} {path}"))
                page = Page(500, b"something went wrong; the log says what\n")
        async with asyncio.timeout(CLIENT_S):
            writer.write(_response(page, is_head=method == "HEAD"))
            await writer.drain()
            writer.close()
            await writer.wait_closed()


def _parse(head: bytes) -> tuple[str, str, dict[str, str]] | None:
    """Return method, path and headers, the latter by names in lower case; None if it is no request."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return None
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, separator, value = line.partition(":")
        if separator:
            headers[name.strip().lower()] = value.strip()
    return words[0], words[1].partition("?")[0], headers


def _response(page: Page, *, is_head: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}",
        f"content-type: {page.content_type}",
        f"content-length: {len(page.body)}",
        *(f"{name}: {value}" for name, value in {**NO_STORE, **page.headers}.items()),
        "connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1") + (b"" if is_head else page.body)
