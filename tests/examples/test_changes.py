"""The first two changes of docs/howto/change-it.md, made in a copy of the tree, touch few files."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.examples.pages import ROOT

PAGE = ROOT / "docs" / "howto" / "change-it.md"
COPIED = ("src", "tools", "docs/reference")
POLICY = "src/lonnymq/model/policy.py"
ACTIONS = "src/lonnymq/model/acknowledge.py"
CLIENT = "src/lonnymq/client/aio/acknowledger.py"
FUNCTIONS = "src/lonnymq/sql/functions"

USE_THE_FIELD = """
import sys, lonnymq, psycopg
with lonnymq.Queue(sys.argv[1]) as queue:
    queue.install()
    channel = queue.channel("a")
    assert channel.status() is None
    queue.enqueue("a", 1)
    assert channel.status().policy.sample_limit is None
    channel.set(sample_limit=1000)
    assert channel.status().policy.sample_limit == 1000
    try:
        with psycopg.connect(sys.argv[1]) as one:
            one.execute('''select lonnymq.channel_set('a', '{"sample_limit": 0}')''')
    except Exception as error:
        assert "sample_limit must be a whole number between 1 and" in str(error), error
    else:
        raise AssertionError("0 was accepted")
"""
USE_THE_VERB = """
import asyncio, sys, lonnymq, psycopg
assert lonnymq.PostponeOutcome.POSTPONED == "postponed" and "PostponeOutcome" in lonnymq.__all__
with lonnymq.Queue(sys.argv[1]) as queue:
    queue.install()
    queue.enqueue("a", 1)
    assert queue.dequeue()[0].postpone() is lonnymq.PostponeOutcome.POSTPONED
    assert queue.postpone(queue.dequeue()) == ["postponed"]
    with psycopg.connect(sys.argv[1]) as one:
        rows = one.execute(
            "select kind from lonnymq.kind_rights() where 'message_postpone' = any(names) order by 1"
        )
        assert rows.fetchall() == [("operator",), ("worker",)]
        rows = one.execute(
            "select count(distinct array(select s from unnest(proconfig) s order by s)) from pg_proc"
            " where proname in ('message_postpone', 'message_give_back')"
        )
        assert rows.fetchall() == [(1,)]
async def main():
    async with lonnymq.AsyncQueue(sys.argv[1]) as queue:
        assert await (await queue.dequeue())[0].postpone() == "postponed"
asyncio.run(main())
"""


class Copy:
    """A copy of the tree in which a test makes a change, as a reader of the page would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in COPIED:
            shutil.copytree(
                ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
            )
        # The generators format what they write.
        shutil.copy(ROOT / "pyproject.toml", root)
        self.before = self._texts()

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def insert(self, path: str, before: str, text: str) -> None:
        """Put text in front of the only occurrence of another."""
        present = self.read(path)
        assert present.count(before) == 1, (path, before)
        self.write(path, present.replace(before, text + before))

    def run(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{self.root / 'src'}:{self.root}"}
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def changed(self) -> set[str]:
        after = self._texts()
        return {path for path in after if after[path] != self.before.get(path)}

    def _texts(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and path.suffix not in (".pyc", ".so")
        }


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.fixture
def empty(database: Database) -> str:
    """A database without a queue, because the copy installs its own."""
    return database(is_empty=True)


def section(heading: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_a_policy_field_is_stated_once(copy: Copy, empty: str) -> None:
    for following, line in (
        ("DefaultPolicyChanges", 'sample_limit: int | None = _number(None, "x")'),
        ("PolicyChanges", "sample_limit: int | None"),
        ("PolicySource", 'sample_limit: int | Literal["none"] | None'),
    ):
        copy.insert(POLICY, f"\n\nclass {following}", f"    {line}\n")
    copy.run("tools/policy.py")
    assert copy.changed() == {
        POLICY,
        "src/lonnymq/sql/tables/channel.sql",
        "src/lonnymq/sql/tables/setting.sql",
        "src/lonnymq/sql/views/channel_status.sql",
        "src/lonnymq/sql/functions/channel_due.sql",
        "src/lonnymq/sql/functions/channel_show.sql",
        "src/lonnymq/sql/functions/queue_set.sql",
        "src/lonnymq/sql/functions/turn_allocate.sql",
        "src/lonnymq/sql/functions/turn_read.sql",
        "docs/reference/settings.md",
    }
    # There are two more: the changelog, and the function that obeys the field.
    assert all(f"`{path}`" in section("A policy field") for path in copy.changed())
    copy.run("tools/policy.py", "--check")
    copy.run("-c", USE_THE_FIELD, empty)


def test_an_acknowledgement_is_stated_once(copy: Copy, empty: str) -> None:
    function = copy.read(f"{FUNCTIONS}/message_give_back.sql")
    copy.write(
        f"{FUNCTIONS}/message_postpone.sql",
        function.replace("message_give_back", "message_postpone").replace("'given_back'", "'postponed'"),
    )
    outcome = re.search(r"class GiveBackOutcome.*?\n\n\n", copy.read(ACTIONS), re.DOTALL)
    assert outcome
    copy.insert(
        ACTIONS,
        "class HeartbeatOutcome",
        outcome[0]
        .replace("GiveBack", "Postpone")
        .replace("GIVEN_BACK", "POSTPONED")
        .replace("given_back", "postponed"),
    )
    copy.insert(
        ACTIONS, "ACTIONS: ", 'POSTPONE = Action("postpone", PostponeOutcome.POSTPONED, Effect.RETURN)\n'
    )
    copy.write(
        ACTIONS,
        copy.read(ACTIONS)
        .replace("= (COMPLETE, ", "= (POSTPONE, COMPLETE, ")
        .replace("__all__ = [", '__all__ = ["PostponeOutcome", '),
    )
    client = copy.read(CLIENT)
    for method in re.findall(r"    async def give_back\(.*?\n\n(?=    async)", client, re.DOTALL):
        new = (
            method.replace("give_back", "postpone")
            .replace("GiveBack", "Postpone")
            .replace("GIVE_BACK", "POSTPONE")
        )
        client = client.replace(method, method + new)
    copy.write(
        CLIENT,
        client.replace("    GIVE_BACK,\n", "    GIVE_BACK,\n    POSTPONE,\n").replace(
            "    GiveBackOutcome,\n", "    GiveBackOutcome,\n    PostponeOutcome,\n"
        ),
    )
    copy.run("tools/unasync.py")
    changed = copy.changed()
    assert changed == {
        f"{FUNCTIONS}/message_postpone.sql",
        ACTIONS,
        CLIENT,
        "src/lonnymq/client/sync/acknowledger.py",
    }
    # The two references and the changelog make seven.
    assert all(
        f"`{path.replace('postpone', 'snooze')}`" in section("An acknowledgement verb") for path in changed
    )
    copy.run("-c", USE_THE_VERB, empty)
