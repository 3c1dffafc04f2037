"""The database has settings that somebody else chose for somebody else's program.

First each is tried alone, on a database of its own, so that a failure has a name; then all together, under
load.
"""

import time

import psycopg
from psycopg import sql

from lonnymq import LonnyError, Queue
from lonnymq.embedded import EmbeddedServer
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.evidence import connect
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage
from tests.conftest import on_database

SETTINGS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "array_nulls": "off",
    "statement_timeout": "2s",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "1s",
    "search_path": "nowhere",
    "bytea_output": "escape",
    "datestyle": "German, DMY",
    "intervalstyle": "iso_8601",
    "timezone": "Pacific/Chatham",
    "extra_float_digits": "-15",
    "transform_null_equals": "on",
    "standard_conforming_strings": "off",
    "backslash_quote": "off",
    "quote_all_identifiers": "on",
    "client_min_messages": "error",
    "check_function_bodies": "off",
    "row_security": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_indexscan": "off",
    "enable_seqscan": "off",
    "work_mem": "64kB",
    "jit_above_cost": "0",
    "from_collapse_limit": "1",
    "join_collapse_limit": "1",
    "geqo_threshold": "2",
    "cursor_tuple_fraction": "0",
    "lc_messages": "C",
    "lc_numeric": "C",
    "default_statistics_target": "1",
    "gin_fuzzy_search_limit": "1",
    "vacuum_freeze_min_age": "0",
    "synchronize_seqscans": "off",
}


def play(run: Run) -> Account:
    server = servers.start(run)
    broken = {name: error for name in SETTINGS if (error := tried_alone(run, server, name))}
    run.say(f"{len(SETTINGS)} settings tried alone, {len(broken)} break the queue")
    dsn = hostile_database(server, "everything", SETTINGS)
    stage = Stage(run, dsn)
    stage.problems += [f"with {name} = {SETTINGS[name]}: {error}" for name, error in broken.items()]
    stage.usual_cast()
    began = time.monotonic()
    stage.pause(run.seconds)
    stage.require_flow(5, "with all settings", since=began, workers=stage.workers)
    return stage.settle()


def tried_alone(run: Run, server: EmbeddedServer, name: str) -> str:
    """Take one message through its life, and return what went wrong."""
    try:
        dsn = hostile_database(server, f"with {name}", {name: SETTINGS[name]})
        with Queue(dsn) as queue:
            queue.install()
            queue.set(history="full")
            queue.channel("a").set(max_concurrency=1)
            queue.enqueue("a", {"n": 1}, key="one")
            [message] = queue.dequeue(wait=2.0)
            message.defer(state={"n": 2}, error="once more")
            [message] = queue.dequeue(wait=2.0)
            message.heartbeat(lease_ms=60_000)
            ended = (message.payload, message.state, message.complete())
            problems = queue.verify()
    except (LonnyError, psycopg.Error, ValueError) as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    if ended != ({"n": 1}, {"n": 2}, "completed") or problems:
        return f"the message ended with {ended}, queue_check() says {problems}"
    return ""


def hostile_database(server: EmbeddedServer, name: str, settings: dict[str, str]) -> str:
    """Make a database whose sessions begin with these settings."""
    with connect(server.dsn) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        for setting, value in settings.items():
            # A list of values must not become one value with a comma in it.
            values = sql.SQL(", ").join(sql.Literal(one.strip()) for one in value.split(","))
            connection.execute(
                sql.SQL("alter database {} set {} to {}").format(
                    sql.Identifier(name), sql.Identifier(setting), values
                )
            )
    return on_database(server.dsn, name.replace(" ", "%20"))


SCENARIO = Scenario("hostile-settings", "settings of the database that were meant for others", 15, play)
