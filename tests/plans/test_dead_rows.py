"""Plans made while the tables are full of dead rows, which say nothing of what comes."""

import pytest

from tests.plans.work import assert_as_intended
from tests.sql.conftest import Open

pytestmark = pytest.mark.plan


@pytest.mark.parametrize("channels", [1, 3_000])
def test_tables_of_dead_rows_mislead_no_plan(session: Open, channels: int) -> None:
    """A snapshot keeps dead rows; analysed, the tables have many pages and hardly a row. Then work comes."""
    queue, holder = session(), session()
    holder.run("begin isolation level repeatable read")
    holder.run("select count(*) from message")
    queue.create_many([f"dead {n % channels}" for n in range(3_000)])
    queue.drain(limit=500)
    queue.run("vacuum (analyze) message, lease, wake, turn, channel, dead, history")
    one = session()
    for _ in range(8):
        one.create("only")
        one.complete(one.dequeue(10))
    one.fill("only", 20_000)
    assert_as_intended(session, one)
    assert_as_intended(session)
    holder.run("rollback")
