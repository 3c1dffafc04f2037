"""What our own sessions need, whatever the defaults of the server, the database or the role are."""

import os
import re
from collections.abc import Mapping
from typing import Any

from psycopg import sql

# All of them exist since PostgreSQL 14. What a DSN's own `options` say goes before these.
SETTINGS: Mapping[str, str] = {
    # Calls lock in one statement and act in the next, which must see what was committed in between.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    # The client has time limits of its own. These would cut bulk loads and connections that wait for NOTIFY.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    # How statements and values are read and written.
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "bytea_output": "hex",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    # A function that needs another mode sets it itself.
    "plan_cache_mode": "auto",
}

# Since PostgreSQL 17: an older server would refuse to begin a session with it.
LATER_SETTINGS: Mapping[str, str] = {"transaction_timeout": "0"}
LATER = 170_000

# PgBouncer: "unsupported startup parameter: options"; other poolers: "command-line options".
REFUSAL = re.compile(r"startup parameter|command-line option", re.IGNORECASE)


def startup_options(given: Mapping[str, Any]) -> str | None:
    """Return `options` for the start of a session; None if others' options are out of our sight."""
    if given.get("service") or os.environ.get("PGSERVICE"):
        # Those of a service file would be replaced.
        return None
    ours = " ".join(f"-c {name}={_escaped(value)}" for name, value in SETTINGS.items())
    theirs = given.get("options") or os.environ.get("PGOPTIONS", "")
    return f"{ours} {theirs}".rstrip()


def correction(server_version: int, *, has_options: bool) -> sql.Composed | None:
    """Return the statement for what a session's start could not say; None if it could say everything."""
    if not has_options:
        return _corrected({**SETTINGS, **LATER_SETTINGS})
    return _corrected(LATER_SETTINGS) if server_version >= LATER else None


def is_refusal(error: BaseException) -> bool:
    """Whether a pooler does not take `options`."""
    return REFUSAL.search(str(error)) is not None


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _corrected(settings: Mapping[str, str]) -> sql.Composed:
    """Only what is not as it should be, and was not asked for by the caller in the DSN or by PGOPTIONS."""
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
