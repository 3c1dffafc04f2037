"""A TCP proxy between a client and PostgreSQL that can be slow, stall, reset connections or refuse them."""

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Literal, Self

from psycopg import conninfo

CHUNK_BYTES = 16_384
BUFFER_BYTES = 65_536
CONNECT_S = 5.0

Direction = Literal["to server", "to client"]


class Proxy:
    """Listens on a free port of the loopback address and forwards bytes to the server of a DSN."""

    def __init__(self, dsn: str) -> None:
        self._parameters = conninfo.conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        # Client and server end of each open connection.
        self._connections: set[tuple[socket.socket, socket.socket]] = set()
        self._stalled: set[socket.socket] = set()
        self._abandoned: set[socket.socket] = set()
        self._is_flowing = threading.Event()
        self._is_flowing.set()
        self._is_refusing = False
        # Limit of all connections together, in each direction; None: no limit.
        self.bytes_per_s: float | None = None
        self._free_at: dict[Direction, float] = {"to server": 0.0, "to client": 0.0}
        # When connections were refused, by the monotonic clock.
        self.refused_at: list[float] = []

    @property
    def dsn(self) -> str:
        """A DSN that leads to the server through this proxy."""
        port = self._listener.getsockname()[1]
        through = {"host": "127.0.0.1", "port": port, "sslmode": "disable", "connect_timeout": 2}
        return conninfo.make_conninfo("", **{**self._parameters, **through})

    def __enter__(self) -> Self:
        _start_thread(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread in accept() keeps the socket open; only shutdown() wakes it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset_connections()
        for client in self._abandoned:
            client.close()
        self.resume()

    def stall(self) -> None:
        """Forward nothing, on open and on new connections: both ends see connections without data."""
        self._is_flowing.clear()

    def resume(self) -> None:
        """End stall(): forward what was held back, and go on."""
        self._is_flowing.set()

    def stall_open_connections(self) -> None:
        """Forward nothing on the connections that are open now, until they are reset; new ones work."""
        with self._lock:
            self._stalled.update(end for pair in self._connections for end in pair)

    def abandon_open_connections(self) -> None:
        """End stall() for new connections only: clients see the others open and silent for ever."""
        for client, server in self._forget_connections():
            self._abandoned.add(client)
            server.close()
        self.resume()

    def reset_connections(self) -> None:
        """Reset all connections; new ones work."""
        for pair in self._forget_connections():
            for end in pair:
                # With SO_LINGER 0, close() sends a reset. A thread in recv() needs the shutdown() to wake up.
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def refuse_connections(self) -> None:
        """Reset all connections, and close new ones at once."""
        self._is_refusing = True
        self.reset_connections()

    def accept_connections(self) -> None:
        """End refuse_connections()."""
        self._is_refusing = False

    def forward_to(self, dsn: str) -> None:
        """Forward new connections to the server of another DSN."""
        self._parameters = conninfo.conninfo_to_dict(dsn)

    def _forget_connections(self) -> set[tuple[socket.socket, socket.socket]]:
        with self._lock:
            connections, self._connections = self._connections, set()
            self._stalled.clear()
        return connections

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_refusing:
                self.refused_at.append(time.monotonic())
                client.close()
                continue
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            for end in (client, server):
                # The kernel's own large buffers would hide a slow or stalled connection.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
                if end.family != socket.AF_UNIX:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add((client, server))
            _start_thread(partial(self._forward, client, server, "to server"))
            _start_thread(partial(self._forward, server, client, "to client"))

    def _connect(self) -> socket.socket:
        host, port = str(self._parameters.get("host") or ""), int(self._parameters.get("port") or 5432)
        if host.startswith("/"):
            unix = socket.socket(socket.AF_UNIX)
            unix.connect(os.path.join(host, f".s.PGSQL.{port}"))
            return unix
        server = socket.create_connection((host or "127.0.0.1", port), CONNECT_S)
        server.settimeout(None)
        return server

    def _forward(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                self._is_flowing.wait()
                while source in self._stalled:
                    time.sleep(0.01)
                if self._is_abandoned(source, sink):
                    return
                self._wait_for_bandwidth(len(data), direction)
                sink.sendall(data)
        if not self._is_abandoned(source, sink):
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _is_abandoned(self, source: socket.socket, sink: socket.socket) -> bool:
        return source in self._abandoned or sink in self._abandoned

    def _wait_for_bandwidth(self, size: int, direction: Direction) -> None:
        rate = self.bytes_per_s
        if rate is None:
            return
        with self._lock:
            free_at = max(self._free_at[direction], time.monotonic()) + size / rate
            self._free_at[direction] = free_at
        time.sleep(max(0.0, free_at - time.monotonic()))


def _start_thread(target: Callable[[], object]) -> None:
    threading.Thread(target=target, daemon=True).start()
