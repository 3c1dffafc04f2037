"""Every call names exactly the parameters and columns of its SQL function."""

import importlib
import pkgutil
import re
from typing import Any

import psycopg

import lonnymq.calls
from lonnymq.calls.statement import Statement
from lonnymq.schema import files
from tests.conftest import Connect

MODULES = [
    importlib.import_module(f"lonnymq.calls.{one.name}")
    for one in pkgutil.iter_modules(lonnymq.calls.__path__)
]
STATEMENTS = {
    statement.name: statement
    for module in MODULES
    for statement in (*vars(module).values(), *getattr(module, "STATEMENTS", {}).values())
    if isinstance(statement, Statement) and statement.name in files.created("function")
}
INTERNAL = {
    *("reject", "require_read_committed", "require_channel", "require_length", "require_batch", "to_epoch"),
    *(
        "require_cron",
        "require_cron_instant",
        "require_dequeue",
        "require_worker",
        "require_report",
        "require_progress",
    ),
    *("require_headers", "headers_error", "require_results"),
    *("result_keep_ms", "result_insert", "result_prune"),
    *("group_is_live", "group_release"),
    *("worker_sessions", "server_pids"),
    *("from_epoch", "bytes_as_json", "channel_id", "channel_waiting", "creation_lock", "channel_insert"),
    *("channel_keep_name", "message_late", "turn_allocate"),
    *("sleepers_notify", "history_rows", "history_record", "dead_insert", "lease_expire", "lease_lock"),
    *("lease_end", "lease_end_cancelled"),
    *("history_origin", "history_require", "history_require_past"),
    *(
        "turn_insert",
        "turn_refund",
        "clock_step_fix",
        "clock_step_fix_messages",
        "queue_event_name",
        "queue_next_due",
        "message_settle",
    ),
    *(
        "dequeue_start_full_scan",
        "dequeue_retry_after",
        "turn_lock_woken",
        "turn_read",
        "turn_assess",
        "turn_is_idle",
        "turn_share",
    ),
    *("turn_advance", "turn_release_at", "wake_total", "lease_count_uncapped", "message_next"),
    *("message_wait", "message_bytes", "lease_token"),
    "message_late_and_next",
    *("sleepers_registered", "ids_advance"),
    *(
        "channel_due",
        "channel_show",
        "lease_counts",
        "lease_index_is_cheap",
        "message_sample",
        "table_pages",
        "table_estimate",
    ),
    # The last one is called together with others.
    "message_page",
    *("policy_announce", "policy_assignments"),
    *("message_uuid", "message_uuid_mask", "message_of_uuid", "history_index"),
    *("tenant_role", "tenant_covers", "tenant_require", "tenant_enter", "tenant_channel_add", "tenant_room"),
    *("tenant_confine", "tenant_find", "tenant_prefix_end", "tenant_ranges", "tenant_require_headers"),
    *(
        "caller_role",
        "kind_rights",
        "kind_grant",
        "queue_seal",
        "relation_seal",
        "acknowledgements",
        "policy_fields",
    ),
}


def describe_function(
    connection: psycopg.Connection[Any], name: str
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return a function's parameters, with their types, and its columns."""
    row: Any = connection.execute(
        "select coalesce(p.proargnames, '{}'), p.proargmodes::text[],"
        " array(select format_type(t, null) from"
        " unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality u(t, n) order by n),"
        " array(select a.attname::text from pg_type t join pg_attribute a on a.attrelid = t.typrelid"
        " where t.oid = p.prorettype and a.attnum > 0 order by a.attnum)"
        " from pg_proc p where p.proname = %s and p.pronamespace = 'lonnymq'::regnamespace",
        (name,),
    ).fetchone()
    names, modes, types, of_rows = row
    types = [kind.replace("timestamp with time zone", "timestamptz") for kind in types]
    parameters = list(zip(names, modes or ["i"] * len(names), types, strict=True))
    return (
        [(name, kind) for name, mode, kind in parameters if mode in "ib"],
        [name for name, mode, _ in parameters if mode in "otb"] or of_rows,
    )


def test_a_call_names_every_parameter_and_column_of_its_function(connect: Connect) -> None:
    connection = connect()
    for name, statement in STATEMENTS.items():
        parameters, columns = describe_function(connection, name)
        template = statement.template.replace("string_to_array(%t::text, ',', '-')", "%t")
        # JSON is sent and read as text.
        template = re.sub(r"%([tb])::text(\[\])?::", r"%\1::", template)
        template = re.sub(r"\b(headers|arguments|outcomes)::text", r"\1", template)
        called = re.findall(r"(\w+) => %[tb]::(\S+?)(?=,|\))", template)
        selected = template.partition(" from ")[0].removeprefix("select ").split(", ")
        assert (name, called) == (name, parameters)
        assert (name, sorted(selected)) == (name, sorted(columns) or ["*"])


def test_every_function_is_called_or_internal() -> None:
    functions = set(files.created("function"))
    assert functions - INTERNAL == set(STATEMENTS)
    assert functions >= INTERNAL
