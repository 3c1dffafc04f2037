"""Query plans do not change for the worse after VACUUM and ANALYZE at the worst moments."""

import statistics
import time
from collections.abc import Callable

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.conftest import Connect
from tests.races.sessions import Session, complete, create_in, dequeue, value

pytestmark = [pytest.mark.race, pytest.mark.slow]

CHANNELS = [f"channel {n}" for n in range(1000)]


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """With JIT, where it is available: a plan that triggers it has changed for the worse, too."""

    def connect_with_jit(to: str) -> Session:
        session = connect(to)
        session.execute("set jit = on")
        return session

    return connect_with_jit


@pytest.fixture
def busy_vacuum_dsn(own_server: Callable[..., EmbeddedServer]) -> str:
    server = own_server(fsync=False, settings={"autovacuum_naptime": "1s"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    return server.dsn


def test_analyze_does_not_slow_down_a_drain_over_1000_channels(
    connect: Connect, busy_vacuum_dsn: str
) -> None:
    session, operator = connect(busy_vacuum_dsn), connect(busy_vacuum_dsn)
    holder = connect(busy_vacuum_dsn)
    operator.execute("analyze")
    for _ in range(12):
        create_in(session, CHANNELS)
    costs: list[float] = []
    for step, analyse in enumerate(["", "analyze", "", "hold", "analyze", "vacuum analyze", ""]):
        if analyse == "hold":
            holder.execute("begin isolation level repeatable read")
            value(holder, "select count(*) from turn")
        elif analyse:
            operator.execute(analyse)
        costs.append(cost_of_calls(session, 16))
        if step == 3:
            create_in(session, CHANNELS)
    holder.execute("rollback")
    assert max(costs) < 10 * costs[0], costs


def test_a_session_that_starts_after_analyze_of_empty_tables_is_fast(
    connect: Connect, busy_vacuum_dsn: str
) -> None:
    """Its plans are made while the statistics say that all tables are empty, and then cached."""
    session = connect(busy_vacuum_dsn)
    for _ in range(8):
        create_in(session, CHANNELS)
    fresh = cost_of_calls(session, 20)
    while leased := dequeue(session, 500):
        complete(session, leased)
    session.execute("vacuum analyze")
    late = connect(busy_vacuum_dsn)
    dequeue(late)
    for _ in range(8):
        create_in(late, CHANNELS)
    assert cost_of_calls(late, 20) < 10 * fresh


def cost_of_calls(session: Session, calls: int) -> float:
    """Return the median time to dequeue and complete a batch of 100."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        leased = dequeue(session, 100)
        complete(session, leased)
        times.append(time.perf_counter() - begun)
        assert len(leased) == 100
    return statistics.median(times)
