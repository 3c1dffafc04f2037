"""The record of what operators did."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls.statement import Call, Rows, Statement, call, function, in_utc
from lonnymq.errors import invalid, invalid_kind
from lonnymq.model import AuditRecord, Page, PageCursor

MAX_ARGUMENTS_BYTES = 8192
MAX_LIMIT = 1000

# After an even number of backslashes: otherwise the last one is escaped, and this is text.
ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

RECORD = function(
    "audit_record",
    p_actor="text",
    p_verb="text",
    p_subject="text",
    p_arguments="jsonb",
    p_outcomes="jsonb",
)
MAY_RECORD = Statement(
    "privileges",
    "select bool_and(pg_catalog.has_schema_privilege(n.oid, 'usage')"
    " and pg_catalog.has_function_privilege(p.oid, 'execute')) from pg_catalog.pg_proc p"
    " join pg_catalog.pg_namespace n on n.oid = p.pronamespace"
    " where n.nspname = %t::text and p.proname = 'audit_record'",
    ("text",),
)
PAGE = function(
    "audit_page",
    "id, acted_at, actor, role, verb, subject, arguments::text, outcomes::text",
    p_actor="text",
    p_subject="text",
    p_before_id="bigint",
    p_limit="integer",
)


def may_record(schema: str) -> Call[bool]:
    """Whether this role may record actions; without a queue it may not."""
    return call(MAY_RECORD, schema, decode=lambda rows: bool(rows and rows[0][0]))


def record(
    actor: str, verb: str, subject: str | None, arguments: Mapping[str, Any], outcomes: Iterable[str]
) -> Call[int]:
    found = argument.items("outcomes", outcomes, "a sequence of outcomes")
    return call(
        RECORD,
        argument.text("actor", actor, 1, 255),
        argument.text("verb", verb, 1, 100),
        argument.optional_text("subject", subject, 0, 255),
        arguments_json(arguments),
        json.dumps(Counter(argument.text("outcomes", outcome, 1, 100) for outcome in found)),
        decode=lambda rows: int(rows[0][0]),
        # A second record of one action would be wrong.
        is_repeatable=False,
    )


def page(
    actor: str | None, subject: str | None, before: PageCursor | None, limit: int
) -> Call[Page[AuditRecord]]:
    def decode(rows: Rows) -> Page[AuditRecord]:
        found = [_record(row) for row in map(in_utc, rows[:limit])]
        return Page(found, PageCursor(found[-1].id, 0) if len(rows) > limit else None)

    # One more than wanted tells whether there is another page.
    return call(PAGE, actor, subject, before.id if before else None, limit + 1, decode=decode)


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON. PostgreSQL cannot store NUL, not even in JSON."""
    if not isinstance(arguments, Mapping):
        raise invalid_kind("arguments", arguments, "a mapping of names to values")
    text = ESCAPED_NUL.sub(r"\1\\ufffd", json.dumps(dict(arguments), ensure_ascii=False))
    text = argument.text("arguments", text)
    if len(text.encode()) > MAX_ARGUMENTS_BYTES:
        raise invalid("arguments", f"{len(text.encode())} bytes", f"at most {MAX_ARGUMENTS_BYTES} bytes")
    return text


def _record(row: tuple[Any, ...]) -> AuditRecord:
    id_, acted_at, actor, role, verb, subject, arguments, outcomes = row
    return AuditRecord(id_, acted_at, actor, role, verb, subject, json.loads(arguments), json.loads(outcomes))
