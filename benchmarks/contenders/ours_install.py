"""Installs LonnyMQ's schema: the one place that knows whether the installer exists yet."""

import importlib
import re
from pathlib import Path

import psycopg

SQL = Path(__file__).resolve().parents[2] / "src" / "lonnymq" / "sql"


def install_schema(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> None:
    try:
        installer = importlib.import_module("lonnymq.schema")
        install = installer.install
    except (ImportError, AttributeError):
        install_by_hand(connection, schema)
    else:
        install(connection, schema)


def install_by_hand(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> None:
    with connection.transaction():
        connection.execute(f"create schema {schema}".encode())
        connection.execute(f"set local search_path to {schema}, pg_temp".encode())
        for file in re.findall(r"^\\ir (\S+)", (SQL / "install.sql").read_text(), re.MULTILINE):
            connection.execute((SQL / file).read_bytes())
        connection.execute("insert into setting (salt) values (sha256(gen_random_uuid()::text::bytea))")
