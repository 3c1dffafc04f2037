"""status: the queue at a glance."""

from typing import Annotated

import typer

from lonnymq import QueuePulse, QueueStatus, formatting
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import print_json, print_record


def status(
    exact: Annotated[
        bool, typer.Option("--exact", help="Count everything; takes long in a large queue.")
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show the queue at a glance: messages, demand, lag, dead letters, history.

    In a large queue the counts are estimates, marked with "about".
    """
    with open_queue(dsn, schema) as queue:
        pulse = queue.pulse()
        counts = queue.status() if exact else pulse
        installed = queue.schema_status()
    if as_json:
        counted = formatting.json_value(queue_counts(counts)) if exact else {}
        found = {**formatting.json_value(pulse), **counted, "is_exact": exact or pulse.is_exact}
        print_json({"schema": installed.schema, "state": installed.state, **found})
        return
    about = "" if exact or pulse.is_exact else "about "
    scheduled = f", {about}{pulse.scheduled:,} of them scheduled" if pulse.scheduled else ""
    overflow = (
        f", {formatting.quantity(counts.history_overflow, 'row')} in overflow"
        if counts.history_overflow
        else ""
    )
    oldest_s = pulse.oldest_transaction_s or 0.0
    print_record(
        {
            "queue": f"{schema}, version {pulse.version}, {installed.state}",
            "channels": f"{about}{counts.channels:,}",
            "waiting": f"{about}{counts.waiting:,}{scheduled}",
            "leased": f"{about}{counts.leased:,}" + (f", {pulse.expired:,} expired" if pulse.expired else ""),
            "due": f"{formatting.at_least(pulse.demand, is_complete=pulse.is_due_complete)} of"
            f" {formatting.at_least(pulse.due_channels, is_complete=pulse.is_due_complete)} channels",
            "turn lag": formatting.duration(pulse.turn_lag_s) if pulse.due_channels else None,
            "dead letters": f"{about}{counts.dead:,}",
            "workers asleep": pulse.sleepers,
            "history": f"{pulse.history}{overflow}",
            "unfolded wakes": f"{about}{counts.unfolded_wakes:,}",
            "oldest transaction": formatting.duration(oldest_s) if oldest_s >= 1 else None,
        }
    )


def queue_counts(counts: QueuePulse | QueueStatus) -> dict[str, int]:
    """Return the figures that a large queue only estimates."""
    names = ("channels", "waiting", "leased", "dead", "unfolded_wakes", "history_overflow")
    return {name: getattr(counts, name) for name in names}
