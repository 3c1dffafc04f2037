"""What a migration may contain, because it runs while the queue is in use."""

import pytest

from lonnymq.schema import files
from lonnymq.schema.files import Migration
from tests.migration import next_version
from tools import migrations


def violations(text: str, version: int = 3) -> list[str]:
    return list(migrations.violations(Migration("migrations/x.sql", text, version, "x")))


def contract(text: str) -> str:
    return f"-- contract\n-- breaks_below: 2\n{text}"


def test_the_migrations_of_this_release_follow_the_rules() -> None:
    assert migrations.main() == 0
    assert violations(next_version.EXPAND, 2) == []
    assert violations(next_version.INDEX, 3) == []
    assert violations(next_version.CONTRACT, 4) == []


@pytest.mark.parametrize(
    "text",
    [
        "alter table dead add column if not exists worker text;",
        "alter table turn\n  add column if not exists weight integer not null default 1;",
        "create table if not exists note (id bigint primary key, text text not null);\n"
        "create index if not exists note_text_ix on note (text);",
        "alter table message add constraint short check (length(key) < 9) not valid;",
        "alter table lease set (fillfactor = 50);",
        "-- drop table message;\ncomment on table dead is 'x';",
        contract(
            "alter table dead drop column if exists worker;\ndrop function if exists message_old(text);"
        ),
    ],
)
def test_what_keeps_the_previous_version_working_is_allowed(text: str) -> None:
    assert violations(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alter table dead drop column if exists worker;", "not among"),
        ("alter table dead add column worker text;", "not among"),
        ("alter table message alter column id type integer;", "not among"),
        ("alter table message rename column key to name;", "not among"),
        ("alter table message alter column key set not null;", "not among"),
        ("alter table message add constraint short check (length(key) < 9);", "not among"),
        ("alter table message add column if not exists x bigint references dead;", "not among"),
        ("create index if not exists message_x_ix on message (key);", "not among"),
        ("create unique index concurrently if not exists x on message (key);", "one statement"),
        ("create index concurrently x on message (key);", "one statement"),
        ("create index concurrently if not exists x on message (key);\ncomment on table dead is 'x';", "one"),
        (contract("create index concurrently if not exists x on message (key);"), "one statement"),
        ("create index concurrently if not exists x on history (worker);", "not partitioned"),
        ("create index concurrently if not exists x on nothing (worker);", "must be a table"),
        (
            "create index concurrently if not exists x on message (message_uuid(id));",
            "functions of the queue",
        ),
        ("update message set key = null;", "not among"),
        ("drop function message_create(text);", "not among"),
        ("truncate history;", "not among"),
        ("do $$ begin end $$;", "dollar"),
        ("alter table dead add column if not exists x text not null;", "would not fill"),
        ("alter table dead add column if not exists x uuid default gen_random_uuid();", "rewrites"),
        ("-- breaks_below: 3\ncomment on table dead is 'x';", "must be at most 2"),
        ("-- contract\ndrop table if exists note;", "must say `-- breaks_below: 2`"),
        (contract("alter table dead add column if not exists x text;"), "not among"),
    ],
)
def test_what_would_break_or_delay_the_previous_version_is_refused(text: str, expected: str) -> None:
    found = violations(text)
    assert any(expected in one for one in found), found


def test_contracts_run_after_the_functions_are_replaced() -> None:
    migration = Migration("migrations/0003_x.sql", contract("drop table if exists note;"), 3, "x")
    assert (migration.is_contract, migration.changed_tables, migration.breaks_below) == (True, ("note",), 2)
    assert not files.migrations()[0].is_contract
