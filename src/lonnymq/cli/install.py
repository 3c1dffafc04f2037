"""install, migrate: the queue's schema."""

from lonnymq import SchemaStatus
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.show import emit, say


def install(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Make the queue, or bring it up to date.

    Safe to run at every deployment, by any number of processes at once.
    """
    with opened(dsn, schema) as queue:
        before, after = queue.schema_status(), queue.install()
    _report(before, after, as_json)


def migrate(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Bring an installed queue up to date; messages, leases and policies stay."""
    with opened(dsn, schema) as queue:
        before, after = queue.schema_status(), queue.migrate()
    _report(before, after, as_json)


def _report(before: SchemaStatus, after: SchemaStatus, as_json: bool) -> None:
    if as_json:
        emit({"before": before, "after": after})
    elif before == after:
        say(f"queue {after.schema!r} is at version {after.version}, {after.state}: nothing to do")
    elif before.version == 0:
        say(f"queue {after.schema!r} is installed, version {after.version}")
    elif before.version == after.version:
        say(f"queue {after.schema!r} has the functions of this release, version {after.version}")
    else:
        say(f"queue {after.schema!r} went from version {before.version} to {after.version}")
