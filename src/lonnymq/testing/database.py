"""Databases for tests: a template with a queue, cloned for each test."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import conninfo, sql

from lonnymq.client.sync import Queue
from lonnymq.testing.clock import Clock


@contextmanager
def database(server_dsn: str, template: str = "template0") -> Iterator[str]:
    """Create a database for the duration of the block; yield its name."""
    name = f"lonnymq_test_{uuid.uuid4().hex[:12]}"
    _administer(server_dsn, "create database {} template {}", name, template)
    try:
        yield name
    finally:
        _administer(server_dsn, "drop database if exists {} with (force)", name)


@contextmanager
def template(server_dsn: str, schema: str) -> Iterator[str]:
    """Create a database with an empty queue whose clock can be moved; yield its name."""
    with database(server_dsn) as name:
        with Queue(on_database(server_dsn, name), schema=schema) as queue:
            Clock.install(queue)
        yield name


def on_database(dsn: str, name: str) -> str:
    """Return the DSN with another database; a URL stays a URL."""
    if "://" in dsn:
        return urlsplit(dsn)._replace(path=f"/{name}").geturl()
    return conninfo.make_conninfo(dsn, dbname=name)


def _administer(dsn: str, statement: str, *names: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)).as_bytes(connection))
