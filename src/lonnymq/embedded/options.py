"""The options of a server."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lonnymq.embedded.errors import EmbeddedError

DEFAULT_PORT = 5432
# These have parameters of embedded(), and starting the server relies on them.
RESERVED_SETTINGS = {
    "data_directory",
    "fsync",
    "hba_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
}


@dataclass(frozen=True)
class ServerOptions:
    """The parameters of `embedded()`, validated."""

    data_dir: Path | None = None
    binaries: str | os.PathLike[str] = "auto"
    port: int | None = None
    unix_socket: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    fsync: bool = True
    start_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port <= 65535:
            raise EmbeddedError(f"port must be between 0 and 65535, got {self.port}")
        for name in self.settings:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
                raise EmbeddedError(f"{name!r} is not the name of a PostgreSQL setting")
            if name.lower() in RESERVED_SETTINGS:
                raise EmbeddedError(
                    f"the setting {name!r} cannot be given here: use the parameter of embedded()"
                )

    @property
    def is_temporary(self) -> bool:
        return self.data_dir is None

    @property
    def listens_on_tcp(self) -> bool:
        return self.port is not None or not self.unix_socket

    @property
    def may_choose_port(self) -> bool:
        return self.listens_on_tcp and not self.port
