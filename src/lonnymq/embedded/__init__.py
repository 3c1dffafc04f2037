"""A private PostgreSQL for the first run and for tests: `with lonnymq.embedded() as server: server.dsn`."""

import sys
from types import ModuleType

from lonnymq.embedded.errors import (
    AccountNotFound,
    AlreadyRunning,
    BinariesNotFound,
    DataDirRefused,
    EmbeddedError,
    ServerNotStarted,
)
from lonnymq.embedded.server import EmbeddedServer, embedded

__all__ = [
    "AccountNotFound",
    "AlreadyRunning",
    "BinariesNotFound",
    "DataDirRefused",
    "EmbeddedError",
    "EmbeddedServer",
    "ServerNotStarted",
    "embedded",
]


class _CallablePackage(ModuleType):
    # Importing any module of this package makes the import system bind `lonnymq.embedded` to the package. The
    # package itself is callable, so that `lonnymq.embedded(...)` works after any order of imports.
    __call__ = staticmethod(embedded)


sys.modules[__name__].__class__ = _CallablePackage
