"""Sessions with a fresh queue."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql

from tests.conftest import Connect
from tests.sql.session import Session

Open = Callable[..., Session]
Login = Callable[..., Session]
Tenant = Callable[..., Session]

PASSWORD = "a password"
DENIED = psycopg.errors.InsufficientPrivilege


@pytest.fixture
def session(connect: Connect) -> Open:
    """A factory of sessions, each a connection of its own."""

    def session(**options: Any) -> Session:
        return Session(connect(**options))

    return session


@pytest.fixture
def queue(session: Open) -> Session:
    """One session; each call is a transaction of its own."""
    return session()


@pytest.fixture
def login(dsn: str, connect: Connect) -> Iterator[Login]:
    """A factory of sessions of new roles; `kind` is the kind of role that queue_grant gives them."""
    owner = connect()
    roles: list[str] = []
    opened: list[psycopg.Connection[Any]] = []

    def login(kind: str | None = None, search_path: str | None = "lonnymq") -> Session:
        name = f'lonny "{kind}" {uuid.uuid4().hex[:8]}'
        owner.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(name), PASSWORD))
        roles.append(name)
        if kind:
            owner.execute("select queue_grant(%s, %s)", (name, kind))
        options = f"-c search_path={search_path}" if search_path else ""
        where = conninfo.make_conninfo(dsn, user=name, password=PASSWORD)
        opened.append(psycopg.connect(where, autocommit=True, options=options))
        return Session(opened[-1])

    yield login
    for connection in opened:
        connection.close()
    for name in roles:
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def role_of(session: Session) -> str:
    name: str = session.ask("select current_user")
    return name


def quoted(session: Session) -> str:
    """Return the name of a session's role as an identifier."""
    return sql.Identifier(role_of(session)).as_string(None)


@pytest.fixture
def tenant(login: Login, queue: Session) -> Tenant:
    """A factory of sessions of new roles that are confined to some channels."""

    def tenant(*channels: str, prefix: str | None = None, max_channels: int | None = None) -> Session:
        session = login()
        confine(queue, session, *channels, prefix=prefix, max_channels=max_channels)
        return session

    return tenant


def confine(
    queue: Session,
    session: Session,
    *channels: str,
    prefix: str | None = None,
    max_channels: int | None = None,
) -> None:
    queue.run(
        "select queue_grant(%s, 'tenant', %s, %s, %s)",
        role_of(session),
        list(channels) or None,
        prefix,
        max_channels,
    )
