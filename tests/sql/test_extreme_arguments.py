"""Valid calls in which one argument is extreme: they succeed, or raise an error of their own; none overflows.

Afterwards the queue still works: no value that a call accepts breaks another call.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest

from tests.sql.session import Session

MAX = 2**63 - 1
LONG = "x" * 1_000_000
EXTREMES: Mapping[str, Sequence[Any]] = {
    "bigint": [None, -MAX - 1, -(2**62), -1, 0, 2**31, 253_402_300_800_000, 9 * 10**15, 2**62, MAX],
    "real": [None, float("nan"), float("-inf"), float("inf"), -1.0, 1e-45, 1.0, 3.4e38],
    "integer": [None, -(2**31), -1, 0, 1, 2**31 - 1],
    "text": [None, "", LONG, "\x01", "\u202e\u009b", "é" * 255],
    "bytea": [None, b"", LONG.encode()],
    "boolean": [None, True, False],
    "timestamp with time zone": [
        None,
        "-infinity",
        "4713-01-01 BC",
        "9999-12-31",
        "294276-12-31",
        "infinity",
    ],
    "interval": [None, "-178000000 years", "0", "178000000 years"],
    "uuid": [None],
    "jsonb": [
        *(None, "[]", "1", "null"),
        *(
            f'{{"{field}": {value}}}'
            for field in ("max_concurrency", "release_interval_ms", "weight", "max_size", "max_content_bytes")
            for value in ("null", "-1", "0", "1e400", "9223372036854775807", '"x"', "[]")
        ),
    ],
}
SECRET = "a secret of 32 characters or more"
WORKER = f"w:{hashlib.sha256(SECRET.encode()).hexdigest()[:16]}"
PART = "00000000-0000-0000-0000-000000000001"
# Valid arguments. "leased" stands for the id and the token of a leased message.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "audit_page": {"p_actor": None, "p_subject": None, "p_before_id": None, "p_limit": 10},
    "audit_record": {
        "p_actor": "a",
        "p_verb": "v",
        "p_subject": "s",
        "p_arguments": "{}",
        "p_outcomes": '{"set": 1}',
    },
    "channel_busiest": {"p_limit": 20},
    "channel_explain": {"p_channel": "a"},
    "channel_list": {"p_channels": ["a"]},
    "channel_set": {"p_channel": "a", "p_policy": "{}"},
    "claim_take": {
        "p_prev": None,
        "p_consumer": "c",
        "p_is_alone": False,
        "p_limit": 10,
        "p_lease_ms": 1_000,
    },
    "cron_due": {"p_names": [], "p_limit": 100, "p_now": None},
    "cron_list": {"p_limit": 10, "p_after": ""},
    "cron_set": {
        "p_name": "c",
        "p_expression": "* * * * *",
        "p_channel": "a",
        "p_content": b"{}",
        "p_timezone": "UTC",
        "p_catch_up": "latest",
        "p_max_attempts": None,
        "p_is_declared": False,
        "p_mark_at": None,
        "p_headers": None,
    },
    "dead_list": {"p_channel": None, "p_limit": 10, "p_after": 0},
    "dead_purge_channel": {"p_channel": "a", "p_limit": 10, "p_before": None},
    "dead_redrive_channel": {"p_channel": "a", "p_limit": 10},
    "history_done": {"p_reader": "r", "p_xid": 0, "p_id": 0},
    "history_follow": {
        "p_reader": "r",
        "p_origin": None,
        "p_xid": None,
        "p_id": None,
        "p_is_latest": False,
        "p_max_rows": 10,
        "p_before_xid": None,
    },
    "group_check": {"p_ids": [1]},
    "group_create": {
        "p_channels": ["a"],
        "p_contents": [b"x"],
        "p_callback_channel": "a",
        "p_callback_content": b"x",
        "p_dequeue_ats": None,
        "p_delays_ms": None,
        "p_max_attempts": None,
        "p_headers": None,
        "p_callback_key": None,
        "p_callback_max_attempts": None,
        "p_callback_headers": None,
        "p_deadline_ms": 1_000,
    },
    "group_results": {"p_message_id": 1, "p_token": 1, "p_max_bytes": 1_000},
    "group_sweep": {"p_limit": 1},
    "history_slices": {
        "p_reader": "r",
        "p_origin": None,
        "p_xid": 0,
        "p_id": 0,
        "p_end_xid": 10,
        "p_end_id": 10,
        "p_rows": 10,
    },
    "message_advance": {
        "p_ids": "leased",
        "p_tokens": "leased",
        "p_contents": None,
        "p_delays_ms": None,
        "p_headers": None,
    },
    "message_bury": {"p_ids": "leased", "p_tokens": "leased", "p_errors": None},
    "message_complete": {"p_ids": "leased", "p_tokens": "leased", "p_results": None},
    "message_create": {
        "p_channel": "a",
        "p_content": b"x",
        "p_dequeue_at": None,
        "p_delay_ms": None,
        "p_key": None,
        "p_max_attempts": None,
        "p_headers": None,
    },
    "message_create_many": {
        "p_channels": ["a"],
        "p_contents": [b"x"],
        "p_dequeue_ats": None,
        "p_delays_ms": None,
        "p_keys": None,
        "p_max_attempts": None,
        "p_headers": None,
    },
    "message_defer": {
        "p_ids": "leased",
        "p_tokens": "leased",
        "p_delays_ms": None,
        "p_states": None,
        "p_errors": None,
    },
    "message_dequeue": {
        "p_limit": 1,
        "p_lease_ms": 1_000,
        "p_worker": None,
        "p_is_durable": True,
        "p_is_shared": False,
    },
    "message_heartbeat": {
        "p_ids": "leased",
        "p_tokens": "leased",
        "p_lease_ms": 1_000,
        "p_is_alone": False,
        "p_is_durable": True,
        "p_progress": [0.5],
        "p_notes": ["n"],
    },
    "message_peek_outline": {"p_channel": None, "p_limit": 10, "p_is_leased": False},
    "message_peek": {"p_channel": None, "p_limit": 10, "p_is_leased": False, "p_preview_bytes": 10},
    "message_publish": {"p_publication": "p", "p_parts": [PART], "p_counts": [0]},
    "message_attempts": {"p_id": 1, "p_rows": 10, "p_limit": 10},
    "message_run_now": {"p_ids": [1]},
    "message_show": {"p_ids": [1], "p_preview_bytes": 1},
    "message_status_of": {"p_ids": [1]},
    "queue_set": {"p_settings": "{}"},
    "sleeper_register": {"p_worker": "w", "p_for_ms": 1_000},
    "stage_prune": {"p_older_than": "1 day"},
    "stream_publish": {"p_stream": "s", "p_batch": 1, "p_parts": [PART], "p_counts": [0]},
    "worker_drain": {"p_worker": None},
    "worker_report": {
        "p_worker": WORKER,
        "p_secret": SECRET,
        "p_host": "h",
        "p_pid": 1,
        "p_version": "1",
        "p_tasks": ["t"],
        "p_slots": 1,
        "p_uptime_ms": 0,
        "p_has_session": False,
        "p_busy": 0,
        "p_held": 0,
        "p_message_ids": [1],
        "p_channels": ["a"],
        "p_leased_ats": [1],
        "p_is_draining": False,
    },
}
# Read everything that the calls above may have written. Values are cast to text: Python knows no year 10,000.
READS = [
    "select queue_status()::text",
    "select queue_activity()::text",
    "select channel_busiest()::text",
    "select channel_explain('a')::text",
    "select c::text from channel_status c",
    "select message_peek()::text",
    "select message_peek(p_is_leased => true)::text",
    "select dead_list()::text",
    "select message_status_of(array[1, 2, 3])::text",
    "select cron_due()::text",
    "select w::text from worker_status w",
    "select cron_list()::text",
    "select audit_page()::text",
    "select cron_overdue()::text",
    "select history_lag()::text",
    "select queue_tables()::text",
    "select history_readers()::text",
    "select from_epoch(v)::text from unnest(array[-9223372036854775808, 9223372036854775807]) v",
]


@pytest.mark.parametrize("name", CALLS)
def test_an_extreme_argument_is_accepted_or_refused_and_breaks_nothing(queue: Session, name: str) -> None:
    kinds = dict(
        queue.rows(
            "select n, format_type(t, null) from pg_proc p,"
            " unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) a(n, t)"
            " where p.oid = %s::regproc",
            name,
        )
    )
    assert set(kinds) == set(CALLS[name])
    arguments = ", ".join(f"{one} => %s::{kind}" for one, kind in kinds.items())
    faults = []
    for argument, kind in kinds.items():
        for value in values_of(kind):
            given = {**CALLS[name], argument: value}
            if "leased" in given.values():
                queue.create("b")
                leased = queue.lease()
                live = {"p_ids": [leased.message_id], "p_tokens": [leased.token]}
                given.update((one, ids) for one, ids in live.items() if given[one] == "leased")
            try:
                queue.run(f"select {name}({arguments})::text", *(given[one] for one in kinds))
            except psycopg.Error as error:
                if not (error.sqlstate or "").startswith("LQ") or len(str(error)) > 2_000:
                    faults.append(f"{argument} {str(value)[:50]}: {error.sqlstate} {str(error)[:200]}")
    assert not faults, "\n" + "\n".join(faults)
    for statement in READS:
        queue.run(statement)
    assert queue.try_create("innocent")[0] == "created"


def values_of(kind: str) -> Iterator[Any]:
    if not kind.endswith("[]"):
        yield from EXTREMES[kind]
        return
    yield None
    yield []
    yield from ([value] for value in EXTREMES[kind.removesuffix("[]")])
