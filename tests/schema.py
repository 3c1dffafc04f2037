"""Installs and migrates on a given connection through a Queue, as users do."""

import os
from typing import Any

from psycopg import Connection

from lonnymq import Queue, SchemaStatus


def install(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    status = Queue("", schema=schema).install(connection=connection)
    if mutant := os.environ.get("LONNYMQ_TEST_MUTANT"):
        # The queue without one of its rules: the tests must notice.
        from tests.interleavings.mutants import MUTANTS

        MUTANTS[mutant].apply(connection)
    return status


def migrate(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    return Queue("", schema=schema).migrate(connection=connection)


def status(connection: Connection[Any], schema: str = "lonnymq") -> SchemaStatus:
    return Queue("", schema=schema).schema_status(connection=connection)


def uninstall(connection: Connection[Any], schema: str = "lonnymq") -> None:
    Queue("", schema=schema).uninstall(connection=connection)
