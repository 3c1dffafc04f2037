"""An invalid argument raises an error with a SQLSTATE of its own that names it, and changes nothing."""

import hashlib
from typing import Any

import psycopg
import pytest

from lonnymq.model import POLICY_FIELDS
from lonnymq.model.acknowledge import ACTIONS
from tests.sql.conftest import Open
from tests.sql.session import Session
from tests.sql.test_leases import all_rows

LONG = "'" + "x" * 256 + "'"
SECRET = "0123456789abcdef" * 2
WORKER = f"w:{hashlib.sha256(SECRET.encode()).hexdigest()[:16]}"
BAD_CHANNELS = ["null", "''", LONG, r"e'a\nb'", r"e'\t'", r"e'\x7f'", r"e'\x01'", r"e'\u0085'"]
BAD_INSTANTS = [
    f"timestamptz '{at}'" for at in ("infinity", "-infinity", "0001-01-01", "9999-12-31", "20000-01-01")
]
IN_101_YEARS = "now() + interval '101 years'"
BAD_CRONS = ["null", "''", "'" + "x" * 201 + "'", r"e'a\nb'"]
BAD_LIMITS = ["null", "0", "-1", "-2147483648", "10001", "2147483647"]
BAD_LEASES = ["null", "0", "-1", "86400001", "9223372036854775807"]
ACKNOWLEDGING = [*(f"message_{action.name}" for action in ACTIONS), "message_heartbeat"]


def policy(text: str) -> str:
    return f"channel_set('a', '{text}')"


REPORTED = {
    "worker": f"'{WORKER}'",
    "secret": f"'{SECRET}'",
    "host": "'h'",
    "pid": "1",
    "version": "'1'",
    "tasks": "'{}'",
    "slots": "1",
    "uptime_ms": "0",
    "has_session": "false",
    "busy": "0",
    "held": "0",
    "message_ids": "'{1}'",
    "channels": "'{a}'",
    "leased_ats": "'{1}'",
    "is_draining": "false",
}


def reported(**changes: str) -> str:
    values = {**REPORTED, **changes}
    return f"worker_report({', '.join(f'p_{name} => {value}' for name, value in values.items())})"


def variants(call: str, argument: str, values: list[str]) -> list[tuple[str, str]]:
    return [(call.format(value), argument) for value in values]


CALLS: dict[str, list[tuple[str, str]]] = {
    "message_create": [
        *variants("message_create({}, 'x')", "channel", BAD_CHANNELS),
        ("message_create('a', null)", "content"),
        *variants("message_create('a', 'x', {})", "dequeue_at", ["9000000000000001", "-9000000000000001"]),
        *variants("message_create('a', 'x', p_delay_ms => {})", "delay_ms", ["-1", "3155760000001"]),
        ("message_create('a', 'x', 1, 1)", "delay_ms"),
        *variants("message_create('a', 'x', p_key => {})", "key", ["''", LONG]),
        *variants("message_create('a', 'x', p_max_attempts => {})", "max_attempts", ["0", "-1"]),
    ],
    "message_create_many": [
        ("message_create_many(null, '{}')", "channels"),
        ("message_create_many('{}', null)", "contents"),
        *variants("message_create_many(array['a', {}], array['x', 'y'::bytea])", "channel", BAD_CHANNELS),
        ("message_create_many('{a,b}', '{x}')", "contents"),
        ("message_create_many('{a}', '{x,y}')", "contents"),
        ("message_create_many('{a}', '{}')", "contents"),
        ("message_create_many('{a,b}', '{x,NULL}')", "contents"),
        ("message_create_many('{a}', '{x}', '{1,2}')", "dequeue_ats"),
        ("message_create_many('{a}', '{x}', '{}')", "dequeue_ats"),
        ("message_create_many('{a,a}', '{x,x}', '{1,9000000000000001}')", "dequeue_ats"),
        ("message_create_many('{a}', '{x}', null, '{1,2}')", "delays_ms"),
        ("message_create_many('{a}', '{x}', null, '{-1}')", "delays_ms"),
        ("message_create_many('{a,b}', '{x,y}', '{1,NULL}', '{1,NULL}')", "delays_ms"),
        ("message_create_many('{a}', '{x}', p_keys => '{a,b}')", "keys"),
        ("""message_create_many('{a,b}', '{x,y}', p_keys => '{k,""}')""", "keys"),
        (f"message_create_many('{{a}}', '{{x}}', p_keys => array[{LONG}])", "keys"),
        ("message_create_many('{a}', '{x}', p_max_attempts => '{1,2}')", "max_attempts"),
        ("message_create_many('{a,b}', '{x,y}', p_max_attempts => '{1,0}')", "max_attempts"),
    ],
    "message_publish": [
        *variants("message_publish({}, '{{}}', '{{}}')", "publication", ["null", "''", LONG]),
        ("message_publish('p', null, '{}')", "parts"),
        ("message_publish('p', '{}', null)", "counts"),
        ("message_publish('p', '{}', '{}')", "parts"),
        ("message_publish('p', array[gen_random_uuid()], '{}')", "counts"),
    ],
    "message_dequeue": [
        *variants("message_dequeue({})", "limit", BAD_LIMITS),
        *variants("message_dequeue(1, {})", "lease_ms", BAD_LEASES),
        (f"message_dequeue(1, 1000, {LONG})", "worker"),
    ],
    "acknowledging": [
        call
        for name in ACKNOWLEDGING
        for call in [
            (f"{name}(null, '{{}}')", "ids"),
            (f"{name}('{{}}', null)", "tokens"),
            (f"{name}('{{1}}', '{{}}')", "tokens"),
            (f"{name}('{{1}}', '{{1,2}}')", "tokens"),
            (f"{name}(array_fill(1::bigint, array[10001]), array_fill(1::bigint, array[10001]))", "ids"),
        ]
    ],
    "message_defer": [
        ("message_defer('{1}', '{1}', '{}')", "delays_ms"),
        ("message_defer('{1}', '{1}', '{1,2}')", "delays_ms"),
        ("message_defer('{1}', '{1}', '{-1}')", "delays_ms"),
        ("message_defer('{1,2}', '{1,2}', '{5,3155760000001}')", "delays_ms"),
        ("message_defer('{1}', '{1}', null, '{x,y}')", "states"),
        ("message_defer('{1}', '{1}', null, null, '{x,y}')", "errors"),
    ],
    "message_bury": [
        ("message_bury('{1}', '{1}', '{}')", "errors"),
        ("message_bury('{1}', '{1}', '{a,b}')", "errors"),
    ],
    "message_heartbeat": [
        *variants("message_heartbeat('{{1}}', '{{1}}', {})", "lease_ms", BAD_LEASES),
        *variants(
            "message_heartbeat('{{1}}', '{{1}}', p_progress => {})",
            "progress",
            ["'{}'", "'{0,1}'", "'{-0.1}'", "'{1.1}'", "'{NaN}'", "'{Infinity}'"],
        ),
        *variants(
            "message_heartbeat('{{1}}', '{{1}}', p_notes => {})",
            "notes",
            ["'{}'", "'{a,b}'", "array[repeat('x', 201)]"],
        ),
    ],
    "message_read": [
        ("message_read(null, '{}')", "ids"),
        ("message_read('{}', null)", "tokens"),
        ("message_read('{1,2}', '{1}')", "tokens"),
    ],
    "message_cancel": [
        ("message_cancel(null)", "ids"),
        *variants("message_cancel_key({}, 'k')", "channel", BAD_CHANNELS),
        ("message_cancel_key('a', null)", "key"),
    ],
    "channel_set": [
        *variants("channel_set({})", "channel", BAD_CHANNELS),
        ("channel_set('a', null)", "policy"),
        *[
            (policy(text), "policy")
            for text in ("[]", "1", "null", '"x"', '{"unknown": 1}', '{"Weight": 1}', '{"": 1}')
        ],
        *[
            (policy(f'{{"{name}": {value}}}'), name)
            for name, field in POLICY_FIELDS.items()
            for value in (
                ("0", '"true"', "[]")
                if field.is_flag
                else ("-1", "1.5", '"1"', "true", "[1]", "{}", "1e30", 2**63, field.low - 1, field.high + 1)
            )
        ],
        (policy('{"weight": 2, "max_size": -1}'), "max_size"),
    ],
    "other channel functions": [
        call
        for name in ("channel_pause", "channel_resume", "channel_delete", "channel_explain")
        for call in variants(f"{name}({{}})", "channel", BAD_CHANNELS)
    ],
    "looking at messages and channels": [
        *[bad for bad in variants("message_peek({})", "channel", BAD_CHANNELS) if "(null)" not in bad[0]],
        *variants("message_peek('a', {})", "limit", BAD_LIMITS),
        *variants("message_peek_outline('a', {})", "limit", BAD_LIMITS),
        ("message_peek('a', 1, false, -1)", "preview_bytes"),
        ("message_show(null)", "ids"),
        ("message_show('{1}', -1)", "preview_bytes"),
        *variants("channel_busiest({})", "limit", BAD_LIMITS),
        *variants("channel_overdue({})", "limit", BAD_LIMITS),
        ("channel_list(null)", "channels"),
        ("channel_list(array_fill('a'::text, array[10001]))", "channels"),
        *variants("channel_page(p_limit => {})", "limit", BAD_LIMITS),
        *variants("queue_pulse({})", "limit", BAD_LIMITS),
        *[bad for bad in variants("message_page({})", "channel", BAD_CHANNELS) if "(null)" not in bad[0]],
        *variants("message_page(p_limit => {})", "limit", BAD_LIMITS),
        ("message_page(p_status => 'done')", "status"),
        ("message_page('a', p_before_id => 1)", "before_at"),
        ("message_page('a', p_prefix => 'a')", "prefix"),
    ],
    "dead letters": [
        ("dead_redrive(null)", "ids"),
        ("dead_purge(null)", "ids"),
        *variants("dead_list(null, {})", "limit", BAD_LIMITS),
        ("dead_list(null, 1, null)", "after"),
        *[bad for bad in variants("dead_page({})", "channel", BAD_CHANNELS) if "(null)" not in bad[0]],
        *variants("dead_page(p_limit => {})", "limit", BAD_LIMITS),
        ("dead_page(p_before_id => 1)", "before_at"),
        *[bad for bad in variants("dead_groups({})", "channel", BAD_CHANNELS) if "(null)" not in bad[0]],
        *variants("dead_groups(null, {})", "limit", BAD_LIMITS),
        *variants("dead_groups(null, 1, {})", "limit", BAD_LIMITS),
        ("dead_show(null)", "ids"),
        ("dead_show('{1}', -1)", "preview_bytes"),
        *variants("dead_redrive_channel({})", "channel", BAD_CHANNELS),
        *variants("dead_redrive_channel('a', {})", "limit", BAD_LIMITS),
        *variants("dead_purge_channel({})", "channel", BAD_CHANNELS),
        *variants("dead_purge_channel('a', {})", "limit", BAD_LIMITS),
    ],
    "queue_set": [
        ("queue_set(null)", "settings"),
        *[
            (f"queue_set('{text}')", "settings")
            for text in ("[]", "1", "null", '{"unknown": 1}', '{"salt": "x"}')
        ],
        *[
            (f"""queue_set('{{"history": {value}}}')""", "history")
            for value in ("null", '"on"', "true", "1", '["off"]')
        ],
        *[
            (f"""queue_set('{{"max_content_bytes": {value}}}')""", "max_content_bytes")
            for value in ("null", "0", "-1", "67108865", "1.5", '"1"', "true")
        ],
        *[
            (f"""queue_set('{{"quantum": {value}}}')""", "quantum")
            for value in ("null", "0", "101", "1.5", '"1"', "true")
        ],
        ("""queue_set('{"history": "full", "max_content_bytes": 0}')""", "max_content_bytes"),
    ],
    "sleepers": [
        *variants("sleeper_register({}, 1000)", "worker", ["null", "''", LONG]),
        *variants("sleeper_register('w', {})", "for_ms", ["null", "0", "-1", "3600001"]),
    ],
    "workers": [
        *variants(f"worker_register({{}}, '{SECRET}', 1)", "worker", ["null", "''", LONG, "'w:0'", "'w'"]),
        *variants("worker_register('a name of 17 or more', {}, 1)", "secret", ["null", "''", "'x'", LONG]),
        *variants(f"worker_leave({{}}, '{SECRET}')", "worker", ["null", "''", LONG, "'w:0'", "'w'"]),
        *variants("worker_leave('a name of 17 or more', {})", "secret", ["null", "''", "'x'", LONG]),
        (f"worker_register(repeat('w', 17), '{SECRET}', 1)", "worker"),
        *variants("worker_drain({})", "worker", ["''", LONG]),
        (reported(secret="null"), "secret"),
        *(
            (reported(**{name: value}), name)
            for name, value in [
                *(("host", "null"), ("host", LONG), ("pid", "-1"), ("version", "null"), ("version", LONG)),
                *(("tasks", "null"), ("tasks", "'{NULL}'"), ("tasks", "array[repeat('x', 6000)]")),
                ("tasks", "array_fill('t'::text, array[51])"),
                *(("slots", "-1"), ("slots", "1000001"), ("uptime_ms", "-1"), ("uptime_ms", "3155760000001")),
                *(
                    ("busy", "null"),
                    ("held", "1000001"),
                    ("message_ids", "null"),
                    ("message_ids", "'{NULL}'"),
                ),
                ("message_ids", "array_fill(1::bigint, array[11])"),
                *(("channels", "'{}'"), ("channels", "'{a,b}'"), ("channels", "array[repeat('x', 6000)]")),
                *(("leased_ats", "'{}'"), ("leased_ats", "'{-1}'"), ("leased_ats", "'{9000000000000001}'")),
            ]
        ),
    ],
    "stage_prune": variants(
        "stage_prune({})", "older_than", ["'-1 day'", "'0'", "'59 minutes'", "'101 years'", "'-100000 years'"]
    ),
    "ids_advance": variants("ids_advance({})", "by", ["null", "0", "-1", "9999", "9223372036854775807"]),
    "history readers": [
        *variants("history_follow({}, null, null, null, false, 1, null)", "reader", ["null", "''", LONG]),
        *variants("history_slices({}, null, 1, 1, 2, 2, 1)", "reader", ["''", LONG]),
        (f"history_slices('r', {LONG}, 1, 1, 2, 2, 1)", "origin"),
        (f"history_follow('r', {LONG}, 1, 1, false, 1, null)", "origin"),
        ("history_follow('r', null, 1, null, false, 1, null)", "position"),
        ("history_follow('r', null, null, 1, false, 1, null)", "position"),
        ("history_follow('r', null, null, null, false, 0, null)", "max_rows"),
    ],
    "history_prepare": variants("history_prepare({})", "days", ["null", "-1", "367"]),
    "cron": [
        *variants("cron_set({}, '* * * * *', 'a', 'x')", "name", BAD_CRONS),
        *variants("cron_set('c', {}, 'a', 'x')", "expression", ["null", "''", LONG]),
        *variants("cron_set('c', '* * * * *', {}, 'x')", "channel", BAD_CHANNELS),
        ("cron_set('c', '* * * * *', 'a', null)", "content"),
        *variants("cron_set('c', '* * * * *', 'a', 'x', {})", "timezone", ["null", "''", LONG]),
        *variants("cron_set('c', '* * * * *', 'a', 'x', 'UTC', {})", "catch_up", ["null", "''", "'ALL'"]),
        ("cron_set('c', '* * * * *', 'a', 'x', p_max_attempts => 0)", "max_attempts"),
        ("cron_set('c', '* * * * *', 'a', 'x', p_is_declared => null)", "is_declared"),
        *variants(
            "cron_set('c', '* * * * *', 'a', 'x', p_mark_at => {})", "mark_at", [*BAD_INSTANTS, IN_101_YEARS]
        ),
        ("cron_due(null)", "names"),
        *variants("cron_due('{{}}', {})", "limit", BAD_LIMITS),
        *variants("cron_due('{{}}', 1, {})", "now", BAD_INSTANTS),
        *variants("cron_tick({}, now(), now(), '{{}}', now() + interval '1 h')", "name", BAD_CRONS),
        *variants(
            "cron_tick('c', {}, now(), '{{}}', now() + interval '1 h')", "mark_at", ["null", *BAD_INSTANTS]
        ),
        *variants(
            "cron_tick('c', now(), {}, '{{}}', now() + interval '1 h')",
            "until_at",
            ["null", "now() - interval '1 s'", *BAD_INSTANTS],
        ),
        *variants("cron_tick('c', now(), now(), '{{}}', {})", "next_at", ["null", "now()", *BAD_INSTANTS]),
        *variants(
            "cron_tick('c', now() - interval '1 h', now(), {}, now() + interval '1 h')",
            "ticks",
            [
                "null",
                "array[null]::timestamptz[]",
                "array[now() - interval '1 h']",
                "array[now() + interval '1 s']",
                "array[now(), now()]",
            ],
        ),
        ("cron_tick('c', now(), now(), array_fill(now(), array[10001]), now() + interval '1 h')", "ticks"),
        *variants("cron_pause({})", "name", BAD_CRONS),
        *variants("cron_resume({})", "name", BAD_CRONS),
        *variants("cron_delete({})", "name", BAD_CRONS),
        *variants("cron_list({})", "limit", BAD_LIMITS),
        ("cron_list(1, null)", "after"),
        *variants("cron_overdue({})", "limit", BAD_LIMITS),
        *variants("history_lag({})", "limit", BAD_LIMITS),
    ],
    "look": [
        ("message_run_now(null)", "ids"),
        ("message_run_now(array_fill(1::bigint, array[10001]))", "ids"),
        ("message_attempts(null)", "id"),
        *variants("message_attempts(1, {})", "limit", BAD_LIMITS),
        *variants("message_attempts(1, 1, {})", "limit", BAD_LIMITS),
    ],
    "audit": [
        *variants("audit_record({}, 'v')", "actor", ["null", "''", "repeat('x', 256)"]),
        *variants("audit_record('a', {})", "verb", ["null", "''", "repeat('x', 101)"]),
        ("audit_record('a', 'v', repeat('x', 256))", "subject"),
        *variants(
            "audit_record('a', 'v', 's', {})",
            "arguments",
            ["null", "'[]'", "'1'", "jsonb_build_object('x', repeat('x', 8192))"],
        ),
        *variants(
            "audit_record('a', 'v', 's', '{{}}', {})",
            "outcomes",
            ["null", "'[]'", """'{"set": "1"}'""", "jsonb_build_object(repeat('x', 1000), 1)"],
        ),
        *variants("audit_page(p_limit => {})", "limit", BAD_LIMITS),
    ],
}


@pytest.fixture
def populated(queue: Session) -> Session:
    """A queue with waiting, leased and buried messages."""
    queue.set("a", max_concurrency=5)
    queue.fill("a", 4)
    taken = queue.take(3)
    queue.bury(taken[:1], "x")
    queue.complete(taken[1:2])
    return queue


def rows_of_all_tables(queue: Session) -> list[Any]:
    tables = ("audit", "channel", "cron", "setting", "publication", "sleeper", "stage", "worker")
    return [all_rows(queue), *(queue.rows(f"select t.* from {table} t order by 1") for table in tables)]


@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_argument_is_named_and_changes_nothing(populated: Session, name: str) -> None:
    before = rows_of_all_tables(populated)
    faults = []
    for call, argument in CALLS[name]:
        shown = call if len(call) < 100 else call[:100] + "…"
        try:
            populated.run(f"select {call}")
        except psycopg.Error as error:
            if error.sqlstate != "LQ001":
                faults.append(f"{shown}: {error.sqlstate} {error}")
            elif argument not in str(error.diag.message_primary).split(" must ")[0]:
                faults.append(f"{shown}: the message does not name {argument}: {error.diag.message_primary}")
            elif not error.diag.message_hint or len(str(error)) > 2_000:
                faults.append(f"{shown}: no hint, or too long: {error}")
        else:
            faults.append(f"{shown}: no error")
    assert not faults, "\n" + "\n".join(faults)
    assert rows_of_all_tables(populated) == before


def test_the_error_names_the_argument_its_value_and_the_range(queue: Session) -> None:
    with pytest.raises(psycopg.Error) as raised:
        queue.run("select message_dequeue(1, 86400001)")
    message = str(raised.value.diag.message_primary)
    assert all(part in message for part in ("lease_ms", "86400001", "between 1 and 86400000"))


def test_a_nul_character_is_refused(queue: Session) -> None:
    for call in ("message_create(%s, 'x')", "channel_set(%s)", "message_create('a', 'x', p_key => %s)"):
        with pytest.raises(psycopg.DataError):
            queue.run(f"select {call}", "a\0b")


WRONG_TYPES = [
    "message_create('a', 'x', 'soon')",
    "message_create('a', 'x', 1.5::float)",
    "message_dequeue('many')",
    "message_complete('{a}', '{b}')",
    "message_complete('{1}', '{99999999999999999999}')",
    "channel_set('a', '{broken')",
    "message_publish('p', '{not-a-uuid}', '{1}')",
    "to_epoch('not a time')",
    "queue_check('maybe')",
    "message_dequeue(99999999999)",
]


def test_a_value_of_the_wrong_type_raises_an_error_of_postgresql(queue: Session) -> None:
    for call in WRONG_TYPES:
        with pytest.raises(psycopg.Error) as raised:
            queue.run(f"select {call}")
        assert (raised.value.sqlstate or "")[:2] in ("22", "42"), call


LENIENT = [
    "message_create('a', 'x', null, null, null, null)",
    "message_create_many('{a}', '{x}', null, null, null, null)",
    "message_create_many('{a}', '{x}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')",
    "message_create_many('{}', '{}', '{}', '{}', '{}', '{}')",
    "message_dequeue(1, 1000, null, null)",
    "message_dequeue(10000, 1000)",
    "message_complete('{NULL}', '{NULL}')",
    "message_defer('{NULL}', '{1}', '{NULL}', '{NULL}', '{NULL}')",
    "message_bury('{1}', '{1}', null)",
    "message_cancel('{NULL,-1,0}')",
    "message_cancel_key('a', '')",
    "dead_redrive('{NULL}')",
    "dead_purge('{NULL}')",
    "dead_list('nobody')",
    "message_peek('nobody', 1, null, null)",
    "message_show('{NULL,-1,0}')",
    "dead_purge_channel('nobody', 1, null)",
    "queue_check(null)",
    "sleeper_clear(null)",
    "sleeper_clear('nobody')",
    "stage_prune(null)",
    "queue_set()",
    "channel_set('a')",
    "to_epoch(null)",
]


def test_null_for_optional_arguments_and_unknown_ids_are_accepted(queue: Session) -> None:
    for call in LENIENT:
        queue.run(f"select {call}")
    assert queue.problems() == []


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_calls_that_need_read_committed_refuse_other_isolation_levels(session: Open, level: str) -> None:
    queue, strict = session(), session(autocommit=False)
    queue.fill("a", 2)
    leased = queue.lease()
    strict.connection.isolation_level = psycopg.IsolationLevel[level]
    lease = f"array[{leased.message_id}]::bigint[], array[{leased.token}]::bigint[]"
    calls = [
        "message_dequeue()",
        *(f"{name}({lease})" for name in ACKNOWLEDGING),
        *(f"{name}('{{}}', '{{}}')" for name in ACKNOWLEDGING),
        f"message_cancel(array[{leased.message_id}])",
        "channel_set('a')",
        "channel_pause('a')",
        "channel_resume('a')",
        "channel_delete('a')",
        "dead_redrive('{}')",
        "dead_purge('{}')",
        "queue_check(true)",
        "cron_set('c', '* * * * *', 'a', 'x')",
        "cron_tick('c', now(), now(), '{}', now() + interval '1 h')",
        "cron_pause('c')",
        "cron_resume('c')",
        "cron_delete('c')",
        f"worker_register('{WORKER}', '{SECRET}', pg_backend_pid())",
        "worker_watch()",
        "worker_drain('w')",
        reported(worker=f"'{WORKER}'"),
    ]
    for call in calls:
        with pytest.raises(psycopg.Error) as raised:
            strict.run(f"select {call}")
        assert raised.value.sqlstate == "LQ002", call
        assert level.replace("_", " ") in str(raised.value)
        strict.connection.rollback()
    strict.run("select queue_check(), channel_explain('a'), dead_list(), queue_status()")
    strict.connection.rollback()
    assert queue.complete([leased]) == ["completed"]


def test_a_read_only_transaction_is_refused(session: Open) -> None:
    queue = session(autocommit=False)
    queue.connection.read_only = True
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        queue.create("a")
