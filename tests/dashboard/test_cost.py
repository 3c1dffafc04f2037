"""What looking costs: no more in a large queue, once for all visitors, and nothing while nobody looks."""

import time
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from starlette.testclient import TestClient

from lonnymq import NewMessage, Queue
from lonnymq.dashboard import DashboardSettings, asgi_app
from tests.dashboard.conftest import operator
from tests.worker.workers import eventually

PAGES = ("/", "/channels", "/channels?order=messages", "/channels?order=name", "/channels/c7")
NAME = "a dashboard under test"


def touched(dsn: str, connect: Any) -> int:
    """Open each page, and return how many pages of the database its server has touched until then."""
    with TestClient(asgi_app(named(dsn), access=operator), base_url="http://localhost") as browser:
        for path in PAGES:
            assert browser.get(path).status_code == 200
    # A session is counted when it ends.
    sessions = "select count(*) from pg_stat_activity where application_name = %s"
    eventually(lambda: connect().execute(sessions, [NAME]).fetchone() == (0,))
    query = "select blks_hit + blks_read from pg_stat_database where datname = current_database()"
    return int(connect().execute(query).fetchone()[0])


def named(dsn: str) -> str:
    return make_conninfo(dsn, application_name=NAME)


@pytest.mark.plan
@pytest.mark.slow
def test_pages_touch_no_more_of_the_database_in_a_large_queue(dsn: str, queue: Queue, connect: Any) -> None:
    costs = []
    for count in (1_000, 20_000):
        for _ in range(3):
            queue.enqueue_many([NewMessage(channel=f"c{n}", payload=n) for n in range(count)])
        queue.dequeue(limit=100)
        connect().execute("vacuum analyze")
        costs.append(min(-touched(dsn, connect) + touched(dsn, connect) for _ in range(3)))
    small, large = costs
    assert 100 < large < 1.6 * small + 500, costs


def test_the_queue_is_looked_at_once_for_all_visitors_and_not_without_any(
    dsn: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.dashboard.sampler.IDLE_S", 1.0)
    app = asgi_app(named(dsn), access=operator, settings=DashboardSettings(sample_s=0.5))
    with TestClient(app, base_url="http://localhost") as browser:
        assert app.sampler.history.queue.points == []
        for _ in range(20):
            browser.get("/")
        first = app.sampler.history.queue.points
        # Another point per interval while somebody looks.
        eventually(lambda: app.sampler.history.queue.points[-1].at > first[-1].at)
        eventually(lambda: app.sampler.is_idle)
        last = app.sampler.history.queue.points[-1]
        time.sleep(1.2)
        assert app.sampler.history.queue.points[-1] == last
        browser.get("/")
        assert app.sampler.history.queue.points[-1].at > last.at
