"""status: the queue at a glance."""

from lonnymq.cli import formatting
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import print_json, print_record


def status(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Show the queue at a glance: channels, messages, dead letters, history."""
    with open_queue(dsn, schema) as queue:
        found = queue.status()
        installed = queue.schema_status()
    if as_json:
        print_json({"schema": installed.schema, "state": installed.state, **formatting.json_value(found)})
        return
    oldest_s = found.oldest_transaction.total_seconds() if found.oldest_transaction else 0.0
    overflow = (
        f", {formatting.quantity(found.history_overflow, 'row')} in overflow"
        if found.history_overflow
        else ""
    )
    print_record(
        {
            "queue": f"{schema}, version {found.version}, {installed.state}",
            "channels": found.channels,
            "waiting": found.waiting,
            "leased": f"{found.leased:,}" + (f", {found.expired:,} expired" if found.expired else ""),
            "dead letters": found.dead,
            "workers asleep": found.sleepers,
            "history": f"{found.history}{overflow}",
            "unfolded wakes": found.unfolded_wakes,
            "oldest transaction": formatting.duration(oldest_s) if oldest_s >= 1 else None,
        }
    )
