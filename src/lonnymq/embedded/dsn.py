"""The libpq URLs of a server."""

from pathlib import Path
from urllib.parse import quote, urlencode

from lonnymq.embedded.initdb import SUPERUSER
from lonnymq.embedded.postmaster import PidFile

LOOPBACK = "127.0.0.1"


def socket_dsn(socket_dir: Path | str, port: int) -> str:
    return f"postgresql://{SUPERUSER}@/postgres?" + urlencode({"host": socket_dir, "port": port}, safe="/")


def tcp_dsn(port: int, password: str | None) -> str:
    secret = f":{quote(password)}" if password else ""
    return f"postgresql://{SUPERUSER}{secret}@{LOOPBACK}:{port}/postgres"


def dsn_of_running(pid_file: PidFile) -> str:
    """Return the URL of a running server for an error message, without the password."""
    if pid_file.socket_dir:
        return socket_dsn(pid_file.socket_dir, pid_file.port)
    return tcp_dsn(pid_file.port, None)
