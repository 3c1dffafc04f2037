"""What goes wrong says what to do, has its exit code, and shows no traceback and no password."""

import subprocess
import sys
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo

from lonnymq import Queue
from lonnymq.cli import words
from lonnymq.cli.exits import Exit
from tests.cli.conftest import Run, environment, in_process
from tests.conftest import Connect, Database

PASSWORD = "s3cret"


@pytest.mark.parametrize(
    ("dsn", "code", "words"),
    [
        (f"postgresql://me:{PASSWORD}@127.0.0.1:1/x", Exit.UNREACHABLE, "`lonnymq up` starts one"),
        (f"host=/nowhere password={PASSWORD}", Exit.UNREACHABLE, "no connection to the database: connection"),
        (f"postgresql+psycopg://me:{PASSWORD}@db/x", Exit.USAGE, "dsn must be a libpq connection string"),
        (f"me:{PASSWORD}@db", Exit.USAGE, "dsn must be a libpq connection string"),
    ],
)
@pytest.mark.parametrize("command", ["status", "doctor", "install", "top"])
def test_a_wrong_dsn_says_what_to_do(dsn: str, code: Exit, words: str, command: str) -> None:
    ended = in_process(dsn)(command)
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.trouble
    assert PASSWORD not in ended.err
    assert "Traceback" not in ended.err


def test_an_answer_that_is_not_text_is_no(dsn: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "lonnymq", "repair"],
        input=b"\xff\xfe\n",
        capture_output=True,
        timeout=60,
        check=False,
        env=environment(dsn, PYTHONIOENCODING="utf-8:strict"),
    )
    assert ended.returncode == Exit.NO
    assert b"not confirmed, nothing was changed" in ended.stderr


def test_a_process_without_a_dsn_uses_libpqs_environment_and_says_so(shell: Run) -> None:
    ended = shell("status", LONNYMQ_DSN="", PGHOST="/nowhere", PGDATABASE="x")
    assert ended.code == Exit.UNREACHABLE
    assert ended.err.splitlines()[0].startswith("error: no connection to the database: ")
    assert "/nowhere" in ended.err
    assert "neither --dsn nor LONNYMQ_DSN is set" in ended.err
    assert "Traceback" not in ended.err


def test_a_missing_queue_says_what_to_do(database: Database) -> None:
    run = in_process(database(is_empty=True))
    for command in (
        ["status"],
        ["enqueue", "a", "1"],
        ["channels"],
        ["dead", "list"],
        ["migrate"],
        ["check"],
        ["sql", "migrate"],
    ):
        ended = run(*command)
        assert ended.code == Exit.SCHEMA
        assert ended.trouble.count("`lonnymq install`") == 1
        assert ended.trouble.endswith("--schema or LONNYMQ_SCHEMA names another queue")


def test_a_refused_login_says_what_to_check(dsn: str) -> None:
    ended = in_process(make_conninfo(dsn, dbname="nowhere"))("status")
    assert ended.code == Exit.UNREACHABLE
    assert ended.err.startswith('error: database "nowhere" does not exist')
    assert ended.trouble.count("LONNYMQ_DSN") == 1


def test_a_queue_of_another_role_says_how_to_run_as_its_owner(
    dsn: str, connect: Connect, lonnymq: Run
) -> None:
    owner = f"owner_{uuid4().hex}"
    connect().execute(f"create role {owner}; create schema theirs authorization {owner}")
    for command in ("install", "migrate"):
        refused = lonnymq(command, "--schema", "theirs")
        assert refused.code == Exit.SCHEMA
        assert "PGOPTIONS='-c role=OWNER'" in refused.trouble
        assert lonnymq(command, "--schema", "theirs", PGOPTIONS=f"-c role={owner}").code == 0
    connect().execute(f"drop schema theirs cascade; drop role {owner}")


def test_a_newer_queue_says_what_to_do(database: Database) -> None:
    dsn = database()
    with Queue(dsn) as queue, queue.caller.source.connection() as connection:
        connection.execute("comment on table lonnymq.migration is 'lonnymq later 99 99'")
    run = in_process(dsn)
    ended = run("migrate")
    assert ended.code == Exit.SCHEMA
    assert "install a newer release of lonnymq here" in ended.trouble
    shown = run("doctor")
    assert shown.code == Exit.NO
    assert "is of a newer release (version 99), unknown to this one" in shown.out


def test_a_host_that_cannot_be_one_is_told_as_unreachable(lonnymq: Run) -> None:
    ended = lonnymq("status", LONNYMQ_DSN="postgresql://...")
    assert ended.code == Exit.UNREACHABLE
    assert "no connection to the database" in ended.trouble


def test_options_go_before_the_environment(dsn: str, lonnymq: Run, database: Database) -> None:
    other = database()
    with Queue(other) as queue:
        queue.enqueue("a", 1)
    assert lonnymq("status", "--json").json["waiting"] == 0
    assert lonnymq("status", "--json", "--dsn", other).json["waiting"] == 1
    assert lonnymq("status", "--schema", "nope").code == Exit.SCHEMA
    assert lonnymq("status", "--schema", "lonnymq", LONNYMQ_SCHEMA="nope").code == 0
    assert lonnymq("status", "--schema", "public").code == Exit.USAGE


def test_an_error_of_the_database_is_told_in_its_own_words(lonnymq: Run, connect: Connect) -> None:
    connect().execute("drop table dead cascade")
    connect().execute("create table dead (message_id text)")
    ended = lonnymq("dead", "list")
    assert ended.code in (Exit.DATABASE, Exit.SCHEMA)
    assert "Traceback" not in ended.err


def test_a_bug_of_ours_is_told_without_a_traceback(lonnymq: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "plain", lambda value: 1 / 0)
    ended = lonnymq("status", "--json")
    assert ended.code == Exit.INTERNAL
    assert "ZeroDivisionError" in ended.trouble
    assert "this is a bug; LONNYMQ_DEBUG=1 shows where" in ended.trouble
    assert "Traceback" not in ended.err
    with pytest.raises(ZeroDivisionError):
        lonnymq("status", "--json", LONNYMQ_DEBUG="1")
