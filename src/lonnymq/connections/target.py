"""Where a client connects: its argument or the environment, and a description without the password."""

import os
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

DEFAULT_SCHEMA = "lonnymq"
# The parts of a DSN that may be shown: no passwords, and no options that may contain one.
SHOWN_PARTS = ("service", "host", "hostaddr", "port", "dbname", "user")


def dsn_or_environment(dsn: Any) -> Any:
    """Return the target; for an empty string, LONNYMQ_DSN. If that is empty too, libpq uses PG* variables."""
    return os.environ.get("LONNYMQ_DSN", "") if isinstance(dsn, str) and not dsn else dsn


def schema_or_environment(schema: str | None) -> str:
    """Return the schema; without one, LONNYMQ_SCHEMA or the default."""
    return (os.environ.get("LONNYMQ_SCHEMA") or DEFAULT_SCHEMA) if schema is None else schema


def describe_target(target: Any) -> str:
    """Return a target as logs and reprs show it, without its password."""
    if not isinstance(target, str):
        return f"a {type(target).__name__}"
    try:
        given = conninfo_to_dict(target)
    except ProgrammingError:
        return "an invalid DSN"
    return " ".join(f"{name}={given[name]}" for name in SHOWN_PARTS if given.get(name)) or "libpq's defaults"
