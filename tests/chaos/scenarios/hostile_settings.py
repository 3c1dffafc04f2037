"""The database has defaults that were chosen for another program.

Each setting is first tried alone, in its own database, so that a failure can be attributed to it; then all
settings that work alone are combined, under load.
"""

import time

import psycopg
from psycopg import sql

from lonnymq import LonnyError, Queue
from lonnymq.embedded import EmbeddedServer
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.evidence import connect
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario
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


def execute(run: Run) -> Account:
    server = servers.start(run)
    broken = {name: error for name in SETTINGS if (error := try_setting(server, name))}
    run.say(f"{len(SETTINGS)} settings tried one by one, {len(broken)} of them break the queue")
    together = {name: value for name, value in SETTINGS.items() if name not in broken}
    harness = Harness(run, create_hostile_database(server, "together", together))
    for name, error in broken.items():
        harness.problem(f"with {name} = {SETTINGS[name]}: {error}")
    harness.start_default_members()
    began = time.monotonic()
    harness.pause(run.seconds)
    harness.require_flow(5, f"with {len(together)} settings", since=began, workers=harness.workers)
    return harness.finish()


def try_setting(server: EmbeddedServer, name: str) -> str:
    """Take one message through its whole life, and return what went wrong, or an empty string."""
    try:
        dsn = create_hostile_database(server, f"with {name}", {name: SETTINGS[name]})
        with Queue(dsn) as queue:
            queue.install()
            queue.set(history="full")
            queue.channel("a").set(max_concurrency=1)
            queue.enqueue("a", {"n": 1}, key="one")
            [message] = queue.dequeue(wait=2.0)
            message.defer(state={"n": 2}, error="try again")
            [message] = queue.dequeue(wait=2.0)
            message.heartbeat(lease_s=60)
            ended = (message.payload, message.state, message.complete())
            problems = queue.check()
    except (LonnyError, psycopg.Error, ValueError) as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    if ended != ({"n": 1}, {"n": 2}, "completed") or problems:
        return f"the message ended with {ended}, queue_check() says {problems}"
    return ""


def create_hostile_database(server: EmbeddedServer, name: str, settings: dict[str, str]) -> str:
    """Create a database with these defaults, and return its DSN."""
    with connect(server.dsn) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        for setting, value in settings.items():
            # A list of values must not become one value that contains a comma.
            values = sql.SQL(", ").join(sql.Literal(one.strip()) for one in value.split(","))
            connection.execute(
                sql.SQL("alter database {} set {} to {}").format(
                    sql.Identifier(name), sql.Identifier(setting), values
                )
            )
    return on_database(server.dsn, name.replace(" ", "%20"))


SCENARIO = Scenario("hostile-settings", "database settings that were meant for another program", 15, execute)
