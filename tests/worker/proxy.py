"""A network between a worker and its database that can be cut, hang without a word, or be slow."""

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from psycopg import conninfo

CHUNK_BYTES = 16_384


class Proxy:
    """Listens on the loopback address and passes bytes on, in both directions, while it likes to."""

    def __init__(self, dsn: str) -> None:
        self._parameters = conninfo.conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._forgotten: list[socket.socket] = []
        self._stalled: set[socket.socket] = set()
        # Bytes per second and direction; None: as fast as it goes.
        self.speed: float | None = None
        # When somebody came to a shut door, by the monotonic clock.
        self.knocks: list[float] = []
        self._is_shut = False
        self._flows = threading.Event()
        self._flows.set()

    @property
    def dsn(self) -> str:
        """The way to the database through here."""
        port = self._listener.getsockname()[1]
        through = {"host": "127.0.0.1", "port": port, "sslmode": "disable", "connect_timeout": 2}
        return conninfo.make_conninfo("", **{**self._parameters, **through})

    def __enter__(self) -> Self:
        _start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread in accept() holds the socket: only this wakes it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()
        for client in self._forgotten:
            client.close()
        self._flows.set()

    def hang(self) -> None:
        """Pass nothing on. Both sides see open connections on which nothing comes."""
        self._flows.clear()

    def stall(self) -> None:
        """Pass nothing on for the connections that there are; new ones work."""
        self._stalled.update(end for pair in self._pairs for end in pair)

    def forget(self) -> None:
        """Work again, for new connections; those of before stay open, and silent for ever."""
        pairs, self._pairs = self._pairs, []
        for client, server in pairs:
            self._forgotten.append(client)
            server.close()
        self._flows.set()

    def reset(self) -> None:
        """Break all connections; new ones work."""
        pairs, self._pairs = self._pairs, []
        self._stalled.clear()
        for pair in pairs:
            for end in pair:
                # Closed with nothing to linger for, a socket sends a reset. A thread in recv() holds it too.
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def shut(self) -> None:
        """Break all connections, and let nobody in."""
        self._is_shut = True
        self.reset()

    def open(self) -> None:
        """Let new connections in again."""
        self._is_shut = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_shut:
                self.knocks.append(time.monotonic())
                client.close()
                continue
            server = self._connected()
            self._pairs.append((client, server))
            _start(partial(self._pass_on, client, server))
            _start(partial(self._pass_on, server, client))

    def _connected(self) -> socket.socket:
        host, port = str(self._parameters.get("host") or ""), int(self._parameters.get("port") or 5432)
        if host.startswith("/"):
            unix = socket.socket(socket.AF_UNIX)
            unix.connect(os.path.join(host, f".s.PGSQL.{port}"))
            return unix
        return socket.create_connection((host or "127.0.0.1", port))

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        is_forgotten = False
        try:
            while data := source.recv(CHUNK_BYTES):
                self._flows.wait()
                while source in self._stalled:
                    time.sleep(0.01)
                if self.speed is not None:
                    time.sleep(len(data) / self.speed)
                sink.sendall(data)
        except OSError:
            is_forgotten = source in self._forgotten or sink in self._forgotten
        if not is_forgotten:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def _start(target: Callable[[], object]) -> None:
    threading.Thread(target=target, daemon=True).start()
