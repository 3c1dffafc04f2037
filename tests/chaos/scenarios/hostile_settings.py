"""The database has settings that somebody else chose for somebody else's program.

First each is tried alone, on a database of its own, so that a failure has a name; then those that
work alone together, under load.
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
    "quote_all_identifiers": "on",
    "plan_cache_mode": "force_generic_plan",
    "enable_indexscan": "off",
    "enable_seqscan": "off",
    "work_mem": "64kB",
    "jit_above_cost": "0",
    "join_collapse_limit": "1",
}


def play(run: Run) -> Account:
    server = servers.start(run)
    broken = {name: error for name in SETTINGS if (error := tried_alone(server, name))}
    run.say(f"{len(SETTINGS)} settings tried alone, {len(broken)} break the queue")
    together = {name: value for name, value in SETTINGS.items() if name not in broken}
    stage = Stage(run, hostile_database(server, "together", together))
    for name, error in broken.items():
        stage.problem(f"with {name} = {SETTINGS[name]}: {error}")
    stage.usual_cast()
    began = time.monotonic()
    stage.pause(run.seconds)
    stage.require_flow(5, f"with {len(together)} settings", since=began, workers=stage.workers)
    return stage.settle()


def tried_alone(server: EmbeddedServer, name: str) -> str:
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
            message.heartbeat(lease_s=60)
            ended = (message.payload, message.state, message.complete())
            problems = queue.check()
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
