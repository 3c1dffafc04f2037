"""What a file of SQL says is inlined is inlined: PostgreSQL counts no call of it."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.plans.plan import flush_statistics
from tests.plans.work import run_hot_calls
from tests.sql.conftest import Open

pytestmark = pytest.mark.plan

FUNCTIONS = Path(str(files("lonnymq"))) / "sql" / "functions"


def described_as_inlined() -> set[str]:
    """Return the functions whose description, above the code, says so."""
    texts = {
        path.stem: path.read_text("utf-8").split("create or replace")[0] for path in FUNCTIONS.glob("*.sql")
    }
    return {name for name, text in texts.items() if re.search("[Ii]nlined( into|[.])", text)}


def test_a_function_that_is_described_as_inlined_is_never_called(session: Open) -> None:
    queue = session()
    queue.run("set track_functions = 'all'")
    queue.set("limited", max_concurrency=3, release_interval_ms=1)
    for channel in ("limited", "b"):
        queue.fill(channel, 5)
    run_hot_calls(queue, session())
    flush_statistics(queue)
    called = {name for (name,) in queue.run("select funcname from pg_stat_user_functions where calls > 0")}
    assert "message_settle" in called
    assert len(described_as_inlined()) >= 12
    assert not called & described_as_inlined()
