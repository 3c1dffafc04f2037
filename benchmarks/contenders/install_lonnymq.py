"""Installs LonnyMQ's schema in the way its users do."""

from pathlib import Path

import psycopg

import lonnymq

# The SQL files that are installed, wherever this interpreter has the package from.
SQL = Path(lonnymq.__file__).resolve().parent / "sql"


def install_schema(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> None:
    lonnymq.Queue("", schema=schema).install(connection=connection)
