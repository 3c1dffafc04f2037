"""audit: what operators did, newest first."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from lonnymq import AuditRecord, PageCursor, formatting
from lonnymq.calls.audit import MAX_LIMIT
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import Cell, print_json, print_table, print_text

COLUMNS = ("when", "actor", "role", "verb", "subject", "arguments", "outcomes")


def audit(
    actor: Annotated[
        str | None,
        typer.Option("--actor", help="Only what this person or program did.", show_default=False),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            help="Only what was done to this channel, message, cron, worker or role.",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option("--before", help="Start before this record, to get the next page.", show_default=False),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MAX_LIMIT, help="Maximum number of rows.")
    ] = 100,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List what operators did: when, who, what, and with which outcome."""
    with open_queue(dsn, schema) as queue:
        cursor = None if before is None else PageCursor(before, 0)
        page = queue.audit.page(actor=actor, subject=subject, before=cursor, limit=limit)
    if as_json:
        print_json(page.items)
        return
    now = datetime.now(UTC)
    print_table(COLUMNS, [_row(one, now) for one in page.items], empty="no actions are recorded")
    if page.next is not None:
        print_text(f"there are more: --before {page.next.id}")


def _row(one: AuditRecord, now: datetime) -> list[Cell]:
    return [
        formatting.timestamp_with_age(one.acted_at, now),
        one.actor,
        one.role,
        one.verb,
        one.subject,
        _short(one.arguments),
        _short(one.outcomes),
    ]


def _short(found: Mapping[str, Any]) -> str:
    pairs = (
        f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in found.items()
    )
    return formatting.one_line(" ".join(pairs), 70)
