"""A link between a process and its server that can be slow, stall or break. On the loopback only."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK_BYTES = 16_384
CONNECT_S = 5.0


class Link:
    """Listens on a port of its own and passes bytes on to another port, in both directions."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        # Bytes per second, all connections of the link together, in each direction; None: no limit.
        self.bytes_per_s: float | None = None
        self._free_at = {"up": 0.0, "down": 0.0}

    def __enter__(self) -> Self:
        _start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            # A thread in accept() holds the socket: only this wakes it.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        self.cut()

    def through(self, dsn: str) -> str:
        """Return the URL of a server on this link's target, by way of the link."""
        parts = urlsplit(dsn)
        return parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{self.port}")).geturl()

    def stall(self) -> None:
        """Pass nothing on: both sides see open connections on which nothing arrives."""
        self._flows.clear()

    def resume(self) -> None:
        """Pass on what waited, and go on."""
        self._flows.set()

    def cut(self) -> None:
        """Reset all connections; new ones work."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    # Closed with nothing to linger for, a socket sends a reset.
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), CONNECT_S)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                # Without large buffers of its own, the link is as slow as it says.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.add((client, server))
            _start(partial(self._pass_on, client, server, "up"))
            _start(partial(self._pass_on, server, client, "down"))

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                self._flows.wait()
                self._wait_for_room(len(data), direction)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _wait_for_room(self, size: int, direction: str) -> None:
        rate = self.bytes_per_s
        if rate is None:
            return
        with self._lock:
            free_at = max(self._free_at[direction], time.monotonic()) + size / rate
            self._free_at[direction] = free_at
        time.sleep(max(0.0, free_at - time.monotonic()))


def _start(target: Callable[[], object]) -> None:
    threading.Thread(target=target, daemon=True).start()
