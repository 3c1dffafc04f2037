"""Who may use the dashboard that `lonnymq serve` starts, by its options and the environment."""

import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from lonnymq.dashboard import Access, PasswordAccess, ProxyAccess, User, Visitor
from lonnymq.dashboard.access import visitor_of


def choose_access(
    host: str,
    users_file: Path | None,
    proxy_header: str,
    proxy_networks: Sequence[str],
    proxy_operators: Sequence[str],
    *,
    is_read_only: bool,
) -> Any:
    """Return the check of visitors; refuse to be open to others without one."""
    access: Any
    users = read_users(users_file)
    if users and proxy_header:
        raise typer.BadParameter("passwords and --proxy-header exclude one another")
    if users:
        access = PasswordAccess(users)
    elif proxy_header:
        access = ProxyAccess(proxy_header, proxy_networks, operators=proxy_operators)
    elif is_loopback(host):
        access = allow_local
    else:
        raise typer.BadParameter(
            f"--host {host} is not loopback, so it needs authentication: set LONNYMQ_DASHBOARD_PASSWORD,"
            " or use --users-file or --proxy-header"
        )
    return limit_to_reading(access) if is_read_only else access


def allow_local(request: Any) -> Visitor:
    """Let everyone act who can reach a loopback address."""
    return Visitor("local", Access.OPERATOR)


def read_users(file: Path | None) -> list[User]:
    """Return the users of the environment and of a file."""
    found = []
    for variable, access in (("", Access.OPERATOR), ("READER_", Access.READER)):
        if password := os.environ.get(f"LONNYMQ_DASHBOARD_{variable}PASSWORD"):
            found.append(User(access.value, password, access))
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file else (), 1):
        if line.strip():
            name, _, rest = line.partition(":")
            kind, colon, password = rest.partition(":")
            if not colon or kind not in (Access.OPERATOR, Access.READER):
                raise typer.BadParameter(
                    f"line {number} of {file} must be name:operator:password or name:reader:password"
                )
            found.append(User(name, password, Access(kind)))
    return found


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def limit_to_reading(access: Any) -> Any:
    """Return a check by which nobody may do more than look."""

    async def check(request: Any) -> Visitor:
        visitor = await visitor_of(access, request)
        return Visitor(visitor.name, min(visitor.access, Access.READER, key=list(Access).index))

    check.challenge = getattr(access, "challenge", None)  # type: ignore[attr-defined]
    return check
