"""What must hold before anything is changed: the schema's name, the server, the version, the owner."""

from typing import Any

from lonnymq.errors import SchemaTooNew, ServerTooOld, WrongIsolationLevel, invalid
from lonnymq.schema import files, trust
from lonnymq.schema.step import Step, Steps, script


def require_schema(schema: Any) -> None:
    """Refuse a name that cannot be a schema of the queue's own, before anything is executed."""
    if not isinstance(schema, str) or not 1 <= len(schema.encode("utf-8", "replace")) <= 63 or "\0" in schema:
        raise invalid("schema", schema, "a name of 1 to 63 bytes")
    if schema.startswith("pg_") or schema in ("information_schema", "public"):
        raise invalid(
            "schema", schema, "the name of a schema for the queue alone, not 'public' or one of PostgreSQL's"
        )


def require_server() -> Steps[None]:
    rows = yield Step(
        "select current_setting('server_version_num')::integer, current_setting('transaction_isolation')"
    )
    version, isolation = rows[0]
    if version < 140000:
        raise ServerTooOld(
            f"the queue needs PostgreSQL 14 or newer, but this server is version {version // 10000}:"
            " upgrade the server"
        )
    if isolation != "read committed":
        raise WrongIsolationLevel(
            f"install() and migrate() must run in a READ COMMITTED transaction, got {isolation.upper()}:"
            " begin the transaction with ISOLATION LEVEL READ COMMITTED"
        )


def lock(schema: str) -> Steps[trust.Trust | None]:
    """Lock the schema until the transaction ends, and make sure that only its owner's code can run in it.

    Returns None if there is no such schema, or if the transaction that had it locked has dropped it.
    """
    assessed = yield from trust.assess(schema)
    if assessed is None:
        return None
    trust.require_owner(schema, assessed)
    yield script("schema/lock.sql")
    assessed = yield from trust.assess(schema)
    if assessed is not None:
        trust.require_owner(schema, assessed)
        trust.require_closed(schema, assessed)
    return assessed


def refuse_newer(schema: str, version: int, breaks_below: int) -> None:
    """Raise if the installed version requires a newer client."""
    if breaks_below > files.latest_version():
        raise SchemaTooNew(
            f"the queue in schema {schema!r} has version {version}, which needs a client of version"
            f" {breaks_below} or newer, but this client has {files.latest_version()}: upgrade lonnymq"
        )
