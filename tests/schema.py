"""Installs and migrates on a given connection through a Queue, as users do."""

from typing import Any

from psycopg import Connection

from lonnymq import Queue, SchemaStatus


def install(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    return Queue("", schema=schema).install(connection=connection)


def migrate(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    return Queue("", schema=schema).migrate(connection=connection)


def status(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    return Queue("", schema=schema).schema_status(connection=connection)


def uninstall(connection: Connection[Any], schema: str = "lonnymq") -> None:
    Queue("", schema=schema).uninstall(connection=connection)
