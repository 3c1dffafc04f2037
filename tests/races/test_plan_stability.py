"""Plans do not flip: vacuum and ANALYZE at the worst moments do not make a call dearer than before."""

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
    """With the compiler, where there is one: a plan that calls for it has flipped too."""

    def compiling(to: str) -> Session:
        session = connect(to)
        session.execute("set jit = on")
        return session

    return compiling


@pytest.fixture
def busy_vacuum_dsn(own_server: Callable[..., EmbeddedServer]) -> str:
    server = own_server(fsync=False, settings={"autovacuum_naptime": "1s"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    return server.dsn


def test_a_drain_over_a_thousand_channels_does_not_collapse_when_tables_are_analysed(
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


def test_a_new_session_after_analyze_of_empty_tables_is_as_quick(
    connect: Connect, busy_vacuum_dsn: str
) -> None:
    """Its plans are made when the statistics say that everything is empty, and then kept."""
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
    """The median time of dequeue and complete of a batch of 100."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        leased = dequeue(session, 100)
        complete(session, leased)
        times.append(time.perf_counter() - begun)
        assert len(leased) == 100
    return statistics.median(times)
