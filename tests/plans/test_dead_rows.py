"""Plans that are made while the tables are full of dead rows."""

import pytest

from tests.plans.work import assert_as_intended
from tests.sql.conftest import Open

pytestmark = pytest.mark.plan


@pytest.mark.parametrize("channels", [1, 3_000])
def test_plans_are_right_after_tables_were_full_of_dead_rows(session: Open, channels: int) -> None:
    """A snapshot keeps dead rows, and ANALYZE sees many pages and hardly any rows. Then messages arrive."""
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
