"""Resolves host names in threads of our own. sync/resolver.py is written by hand too.

The driver would use the event loop's default executor. An application may occupy all threads of that for
longer than a lease, and then heartbeats could not reconnect.
"""

import asyncio
import ipaddress
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

RESOLVER = ThreadPoolExecutor(2, "lonnymq-resolver")


async def resolve(dsn: str) -> dict[str, Any]:
    """Return the options that leave the driver nothing to resolve, if it gets them with the DSN."""
    host = _host_to_resolve(dsn)
    if host is None:
        return {}
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(RESOLVER, lambda: socket.getaddrinfo(host, None))
    except OSError as error:
        raise psycopg.OperationalError(f"failed to resolve host {host!r}: {error}") from error
    unique = list(dict.fromkeys(str(one[4][0]) for one in found))
    return {"host": ",".join([host] * len(unique)), "hostaddr": ",".join(unique)}


def _host_to_resolve(dsn: str) -> str | None:
    """Return the host name, if there is one to resolve; several hosts are left to the driver."""
    given = conninfo_to_dict(dsn)
    if given.get("hostaddr") or given.get("service") or {"PGHOSTADDR", "PGSERVICE"} & os.environ.keys():
        return None
    host = str(given.get("host") or os.environ.get("PGHOST", ""))
    if not host or host.startswith(("/", "@")) or "," in host:
        return None
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    return None
