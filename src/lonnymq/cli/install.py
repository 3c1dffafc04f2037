"""install, migrate: create the queue's schema, or upgrade it."""

from lonnymq import SchemaStatus
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import print_json, print_text


def install(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Install the queue, or upgrade it to this release.

    Safe to run at every deployment, by any number of processes at once.
    """
    with open_queue(dsn, schema) as queue:
        before, after = queue.schema_status(), queue.install()
    _report(before, after, as_json)


def migrate(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Upgrade an installed queue to this release; messages, leases and policies stay."""
    with open_queue(dsn, schema) as queue:
        before, after = queue.schema_status(), queue.migrate()
    _report(before, after, as_json)


def _report(before: SchemaStatus, after: SchemaStatus, as_json: bool) -> None:
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        print_text(f"queue {after.schema!r} is at version {after.version}, {after.state}: nothing to do")
    elif before.version == 0:
        print_text(f"queue {after.schema!r} installed, version {after.version}")
    elif before.version == after.version:
        print_text(f"queue {after.schema!r} now has the functions of this release, version {after.version}")
    else:
        print_text(f"queue {after.schema!r} upgraded from version {before.version} to {after.version}")
