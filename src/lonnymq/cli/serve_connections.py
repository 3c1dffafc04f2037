"""How `lonnymq serve` keeps its connections: how many, and for how long."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 200
# Without a request for this long, a connection is closed.
IDLE_S = 15
# A page takes ten seconds at most, and a slow network some more.
MAX_REQUEST_S = 30.0


class BoundedProtocol(H11Protocol):
    """Aborts a connection on which no request was answered, and its answer read, for a while.

    uvicorn limits only the time between requests. A client that sends a request byte by byte, or does not
    read the answer, would keep its connection, and there are few.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._restart()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._restart()
        super().on_response_complete()

    def _restart(self) -> None:
        self._stop()
        # Unlike closing, this does not wait until the answer has been read.
        self._deadline = self.loop.call_later(MAX_REQUEST_S, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


def make_config(app: Any, root_path: str) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        root_path=root_path,
        http=BoundedProtocol,
        # The address of a proxy must stay visible: whether its headers are believed depends on it.
        proxy_headers=False,
        server_header=False,
        log_config=None,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=IDLE_S,
        limit_concurrency=MAX_CONNECTIONS,
        ws="none",
    )
