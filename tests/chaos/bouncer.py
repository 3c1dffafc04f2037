"""A PgBouncer between the members and a server, which can be killed and restarted on the same port."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from lonnymq.embedded import EmbeddedServer
from tests.chaos.run import Run, Skip, wait_for

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CONFIGURATION = """\
[databases]
* = host=127.0.0.1 port={target} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 20
max_client_conn = 200
server_login_retry = 1
"""


class Bouncer:
    """`mode` is PgBouncer's pool_mode: transaction or session."""

    def __init__(self, run: Run, server: EmbeddedServer, mode: str) -> None:
        if PROGRAM is None:
            raise Skip("needs PgBouncer, for example: apt-get install pgbouncer")
        parts = urlsplit(server.dsn)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.dsn = parts._replace(
            netloc=f"{parts.username}@127.0.0.1:{port}", query="sslmode=disable"
        ).geturl()
        self._log = run.directory / "pgbouncer.log"
        self._file = run.directory / "pgbouncer.ini"
        self._file.write_text(
            CONFIGURATION.format(
                target=server.port, user=parts.username, password=parts.password, port=port, mode=mode
            )
        )
        self._process: subprocess.Popen[bytes] | None = None
        run.cleanup.callback(self.kill)
        self.start()

    def start(self) -> float:
        """Start PgBouncer, and return the time when it accepted connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), *_user_options(self._file), str(self._file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self._is_open, 20, f"PgBouncer to start, see {self._log}")
        return time.monotonic()

    def kill(self) -> None:
        """Kill PgBouncer with SIGKILL, without notice to clients or server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def _is_open(self) -> bool:
        try:
            # Without options: PgBouncer refuses startup parameters that it does not know.
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _user_options(file: Path) -> list[str]:
    """Return options to run as nobody, because PgBouncer refuses to run as root."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    os.chown(file, nobody.pw_uid, nobody.pw_gid)
    return ["-u", nobody.pw_name]
