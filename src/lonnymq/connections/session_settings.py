"""The settings that our own sessions need, whatever the defaults of the server, database or role are."""

import os
import re
from collections.abc import Mapping
from typing import Any

from psycopg import sql

# All of these exist in PostgreSQL 14. The DSN's own `options` take precedence.
SETTINGS: Mapping[str, str] = {
    # Calls lock in one statement and act in the next, which must see the commits in between.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    # The client has its own timeouts. These would interrupt bulk loads and connections that wait for NOTIFY.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    # How statements and values are parsed and formatted.
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "bytea_output": "hex",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    # Functions that need another mode set it themselves.
    "plan_cache_mode": "auto",
}

# New in PostgreSQL 17: an older server would refuse to start a session with it.
SETTINGS_OF_17: Mapping[str, str] = {"transaction_timeout": "0"}
VERSION_17 = 170_000

# PgBouncer says "unsupported startup parameter: options", other poolers "command-line options".
REFUSAL = re.compile(r"startup parameter|command-line option", re.IGNORECASE)


def startup_options(given: Mapping[str, Any], more: Mapping[str, str]) -> str | None:
    """Return `options` for the start of a session; None if a service file may contain options."""
    if given.get("service") or os.environ.get("PGSERVICE"):
        # Ours would replace those of the service file.
        return None
    ours = " ".join(f"-c {name}={_escape(value)}" for name, value in {**SETTINGS, **more}.items())
    theirs = given.get("options") or os.environ.get("PGOPTIONS", "")
    return f"{ours} {theirs}".rstrip()


def correction_statement(
    server_version: int, more: Mapping[str, str], *, has_options: bool
) -> sql.Composed | None:
    """Return a statement for settings that the startup options could not contain; None if none is left."""
    if not has_options:
        return _set_config_statement({**SETTINGS, **more, **SETTINGS_OF_17})
    return _set_config_statement(SETTINGS_OF_17) if server_version >= VERSION_17 else None


def is_refusal(error: BaseException) -> bool:
    """Whether the error says that a pooler refuses `options`."""
    return REFUSAL.search(str(error)) is not None


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _set_config_statement(settings: Mapping[str, str]) -> sql.Composed:
    """Change only settings that differ and that neither the DSN nor PGOPTIONS sets."""
    return sql.SQL(
        "select pg_catalog.set_config(s.name, w.setting, false) from pg_catalog.pg_settings s"
        " join (values {}) w(name, setting) on w.name = s.name"
        " where s.setting <> w.setting and s.source <> 'client'"
    ).format(
        sql.SQL(", ").join(
            sql.SQL("({}, {})").format(sql.Literal(name), sql.Literal(value))
            for name, value in settings.items()
        )
    )
