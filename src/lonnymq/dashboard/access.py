"""Who may look at the dashboard, and who may act: by password, by a proxy's word, or by your own function."""

import base64
import binascii
import hmac
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from starlette.requests import Request

from lonnymq.calls import argument
from lonnymq.dashboard.networks import Networks
from lonnymq.errors import invalid, invalid_kind
from lonnymq.texts import one_line

MIN_PASSWORD = 8
MAX_NAME = 100


class Access(StrEnum):
    """What somebody may do: nothing, look without seeing contents of messages, or everything."""

    NONE = "none"
    READER = "reader"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Visitor:
    """Who sent a request; `name` is recorded with each action."""

    name: str
    access: Access

    @property
    def may_act(self) -> bool:
        return self.access is Access.OPERATOR


Answer = Access | str | Visitor
AccessCheck = Callable[[Request], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class User:
    """A user with a password."""

    name: str
    password: str = field(repr=False)
    access: Access = Access.OPERATOR

    def __post_init__(self) -> None:
        argument.text("name", self.name, 1, MAX_NAME)
        if ":" in self.name:
            raise invalid("name", self.name, "a name without a colon")
        if len(self.password) < MIN_PASSWORD:
            given = f"{len(self.password)} characters"
            raise invalid("password", given, f"{MIN_PASSWORD} characters or more")


class PasswordAccess:
    """HTTP basic authentication. Without TLS, anybody on the way can read the password."""

    challenge = 'Basic realm="LonnyMQ", charset="UTF-8"'

    def __init__(self, users: Sequence[User]) -> None:
        if not users:
            raise invalid("users", users, "at least one user")
        self._users = [(_pair(user.name, user.password), user) for user in users]

    def __call__(self, request: Request) -> Answer:
        given = _credentials(request.headers.get("authorization", ""))
        found = Visitor("", Access.NONE)
        # All of them, so that the time says nothing about which one was nearly right.
        for expected, user in self._users:
            if hmac.compare_digest(given, expected):
                found = Visitor(user.name, user.access)
        return found


class ProxyAccess:
    """Trusts a header in which a proxy states the user's name, on requests from the proxy's addresses.

    The server must not replace the client's address by a forwarded one: uvicorn needs `proxy_headers=False`,
    as `lonnymq serve` has it.
    """

    challenge = None

    def __init__(
        self,
        header: str,
        networks: Sequence[str],
        *,
        operators: Sequence[str] = (),
        everyone: Access | str = Access.READER,
    ) -> None:
        if not networks:
            raise invalid("networks", networks, "at least one network of proxies, such as 10.0.0.0/8")
        self._header = argument.text("header", header, 1, 100)
        self.networks = tuple(networks)
        self._networks = Networks("networks", networks)
        self._operators = frozenset(operators)
        self._everyone = Access(everyone)

    def __call__(self, request: Request) -> Answer:
        names = request.headers.getlist(self._header)
        # Two headers: one may be the visitor's own.
        if not self._networks.include(request) or len(names) != 1 or not 1 <= len(names[0]) <= MAX_NAME:
            return Access.NONE
        is_operator = names[0] in self._operators
        return Visitor(names[0], Access.OPERATOR if is_operator else self._everyone)


def access_check(access: Any) -> AccessCheck:
    """Return the check that an application passed as `access`."""
    if isinstance(access, str):
        granted = Access(argument.enum_value("access", access, Access))
        return lambda request: granted
    if not callable(access):
        raise invalid_kind("access", access, "'reader', 'operator', or a function that takes a request")
    check: AccessCheck = access
    return check


async def visitor_of(check: AccessCheck, request: Request) -> Visitor:
    """Ask who sent a request. An answer that is none of the known ones is an error, never a yes."""
    answer = check(request)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, Visitor):
        return Visitor(one_line(answer.name, MAX_NAME), Access(answer.access))
    if isinstance(answer, str):
        return Visitor("", Access(answer))
    raise invalid_kind("access", answer, "a function that returns 'none', 'reader', 'operator' or a Visitor")


def _credentials(header: str) -> bytes:
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic" or len(value) > 1000:
        return b""
    try:
        return base64.b64decode(value.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _pair(name: str, password: str) -> bytes:
    return f"{name}:{password}".encode()
