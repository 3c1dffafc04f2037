"""The queue moves to another server by logical replication, as for a major upgrade, while it is in use."""

import subprocess
import time

from psycopg import conninfo, sql

from lonnymq.embedded import EmbeddedServer
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.aftermath import examine, require_unique_uids
from tests.chaos.evidence import connect
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario, wait_for
from tests.proxy import Proxy

# What the doctor finds before the repair, and not after it.
REPAIRED = {"sequence", "history", "subscription"}


def execute(run: Run) -> Account:
    old = servers.start(run, settings={"wal_level": "logical"})
    new = servers.start(run)
    proxy = run.cleanup.enter_context(Proxy(old.dsn))
    harness = Harness(run, proxy.dsn)
    harness.start_default_members()
    harness.pause(run.seconds / 3)
    new_dsn = subscribe(run, old, new)
    harness.pause(run.seconds / 3)

    proxy.refuse_connections()
    with connect(old.dsn) as connection:
        wait_for(
            lambda: connection.execute(
                "select slot_name from pg_replication_slots where confirmed_flush_lsn >= pg_current_wal_lsn()"
            ).fetchone(),
            60,
            "the copy to catch up",
        )
    found = examine(run, new_dsn)
    with connect(new_dsn) as connection:
        connection.execute("drop subscription copy")
        connection.execute("select lonnymq.ids_advance()")
        connection.execute("select lonnymq.history_rebase()")
    left = examine(run, new_dsn)
    proxy.forward_to(new_dsn)
    proxy.accept_connections()
    harness.require_recovery(time.monotonic(), "the switch")
    harness.pause(run.seconds / 3)
    account = harness.finish()
    if not found >= REPAIRED or REPAIRED & left:
        account.problems.append(
            f"the doctor found {sorted(found)} before the repair, {sorted(left)} after it"
        )
    require_unique_uids(harness, account, has_reissued_ids=False)
    return account


def subscribe(run: Run, old: EmbeddedServer, new: EmbeddedServer) -> str:
    """Copy the schema without its rows, then all rows, and follow the changes.

    Returns a DSN of the new server, which has the old one's password afterwards.
    """
    pg_dump, psql = (servers.require_program(name) for name in ("pg_dump", "psql"))
    dump = subprocess.run(
        [pg_dump, "--schema-only", "--schema=lonnymq", "--dbname", old.dsn], check=True, capture_output=True
    )
    subprocess.run(
        [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", new.dsn],
        input=dump.stdout,
        check=True,
        capture_output=True,
    )
    password = conninfo.conninfo_to_dict(old.dsn)["password"]
    with connect(new.dsn) as connection:
        connection.execute(sql.SQL("alter role current_user password {}").format(sql.Literal(password)))
    with connect(old.dsn) as connection:
        connection.execute("create publication copy for all tables with (publish_via_partition_root = true)")
    new_dsn = conninfo.make_conninfo(new.dsn, password=password)
    with connect(new_dsn) as connection:
        connection.execute(
            sql.SQL("create subscription copy connection {} publication copy").format(sql.Literal(old.dsn))
        )
        wait_for(
            lambda: (
                not connection.execute(
                    "select srrelid from pg_subscription_rel where srsubstate <> 'r'"
                ).fetchone()
            ),
            60,
            "the tables to be copied",
        )
    run.say("all tables were copied")
    return new_dsn


SCENARIO = Scenario(
    "logical-copy", "move to another server by logical replication: nothing is lost", 20, execute
)
