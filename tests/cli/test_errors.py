"""Errors say what to do, have an exit code, and show neither tracebacks nor passwords."""

import subprocess
import sys
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo

from lonnymq import Queue, formatting
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import Run, environment, runner
from tests.conftest import Connect, Database

PASSWORD = "s3cret"


@pytest.mark.parametrize(
    ("dsn", "code", "error"),
    [
        (f"postgresql://me:{PASSWORD}@127.0.0.1:1/x", CommandExit.UNREACHABLE, "`lonnymq up` starts one"),
        (
            f"host=/nowhere password={PASSWORD}",
            CommandExit.UNREACHABLE,
            "no connection to the database: connection",
        ),
        (
            f"postgresql+psycopg://me:{PASSWORD}@db/x",
            CommandExit.USAGE,
            "dsn must be a libpq connection string",
        ),
        (f"me:{PASSWORD}@db", CommandExit.USAGE, "dsn must be a libpq connection string"),
    ],
)
@pytest.mark.parametrize("command", ["status", "doctor", "install", "top"])
def test_a_wrong_dsn_is_refused_with_advice(dsn: str, code: CommandExit, error: str, command: str) -> None:
    result = runner(dsn)(command)
    assert (result.code, result.out) == (code, "")
    assert error in result.error_text
    assert PASSWORD not in result.err
    assert "Traceback" not in result.err


def test_a_confirmation_that_is_not_text_counts_as_no(dsn: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "lonnymq", "repair"],
        input=b"\xff\xfe\n",
        capture_output=True,
        timeout=60,
        check=False,
        env=environment(dsn, PYTHONIOENCODING="utf-8:strict"),
    )
    assert result.returncode == CommandExit.NO
    assert b"not confirmed, nothing was changed" in result.stderr


def test_without_a_dsn_the_error_says_that_libpqs_environment_was_used(shell: Run) -> None:
    result = shell("status", LONNYMQ_DSN="", PGHOST="/nowhere", PGDATABASE="x")
    assert result.code == CommandExit.UNREACHABLE
    assert result.err.splitlines()[0].startswith("error: no connection to the database: ")
    assert "/nowhere" in result.err
    assert "neither --dsn nor LONNYMQ_DSN is set" in result.err
    assert "Traceback" not in result.err


def test_a_missing_queue_is_reported_with_advice(database: Database) -> None:
    run = runner(database(is_empty=True))
    for command in (
        ["status"],
        ["enqueue", "a", "1"],
        ["channels"],
        ["dead", "list"],
        ["migrate"],
        ["check"],
        ["sql", "migrate"],
    ):
        result = run(*command)
        assert result.code == CommandExit.SCHEMA
        assert result.error_text.count("`lonnymq install`") == 1
        assert result.error_text.endswith("to use a queue in another schema: --schema or LONNYMQ_SCHEMA")


def test_a_refused_login_is_reported_with_advice(dsn: str) -> None:
    result = runner(make_conninfo(dsn, dbname="nowhere"))("status")
    assert result.code == CommandExit.UNREACHABLE
    assert result.err.startswith('error: database "nowhere" does not exist')
    assert result.error_text.count("LONNYMQ_DSN") == 1


def test_installing_into_another_roles_schema_says_how_to_run_as_its_owner(
    dsn: str, connect: Connect, lonnymq: Run
) -> None:
    owner = f"owner_{uuid4().hex}"
    connect().execute(f"create role {owner}; create schema theirs authorization {owner}")
    for command in ("install", "migrate"):
        refused = lonnymq(command, "--schema", "theirs")
        assert refused.code == CommandExit.SCHEMA
        assert "PGOPTIONS='-c role=OWNER'" in refused.error_text
        assert lonnymq(command, "--schema", "theirs", PGOPTIONS=f"-c role={owner}").code == 0
    connect().execute(f"drop schema theirs cascade; drop role {owner}")


def test_a_newer_queue_is_reported_with_advice(database: Database) -> None:
    dsn = database()
    with Queue(dsn) as queue, queue.caller.source.connection() as connection:
        connection.execute("comment on table lonnymq.migration is 'lonnymq later 99 99'")
    run = runner(dsn)
    result = run("migrate")
    assert result.code == CommandExit.SCHEMA
    assert "install a newer release of lonnymq on this machine" in result.error_text
    shown = run("doctor")
    assert shown.code == CommandExit.NO
    assert "is of a newer release (version 99), which this one does not support" in shown.out


def test_an_invalid_host_is_reported_as_unreachable(lonnymq: Run) -> None:
    result = lonnymq("status", LONNYMQ_DSN="postgresql://...")
    assert result.code == CommandExit.UNREACHABLE
    assert "no connection to the database" in result.error_text


def test_options_override_the_environment(dsn: str, lonnymq: Run, database: Database) -> None:
    other = database()
    with Queue(other) as queue:
        queue.enqueue("a", 1)
    assert lonnymq("status", "--json").json["waiting"] == 0
    assert lonnymq("status", "--json", "--dsn", other).json["waiting"] == 1
    assert lonnymq("status", "--schema", "nope").code == CommandExit.SCHEMA
    assert lonnymq("status", "--schema", "lonnymq", LONNYMQ_SCHEMA="nope").code == 0
    assert lonnymq("status", "--schema", "public").code == CommandExit.USAGE


def test_an_unexpected_database_error_shows_no_traceback(lonnymq: Run, connect: Connect) -> None:
    connect().execute("drop table dead cascade")
    connect().execute("create table dead (message_id text)")
    result = lonnymq("dead", "list")
    assert result.code in (CommandExit.DATABASE, CommandExit.SCHEMA)
    assert "Traceback" not in result.err


def test_a_bug_is_reported_without_a_traceback(lonnymq: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "json_value", lambda value: 1 / 0)
    result = lonnymq("status", "--json")
    assert result.code == CommandExit.INTERNAL
    assert "ZeroDivisionError" in result.error_text
    assert (
        "this is a bug in LonnyMQ, please report it; LONNYMQ_DEBUG=1 shows the traceback" in result.error_text
    )
    assert "Traceback" not in result.err
    with pytest.raises(ZeroDivisionError):
        lonnymq("status", "--json", LONNYMQ_DEBUG="1")
