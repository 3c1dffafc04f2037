"""The database is asked once for all visitors, and not while nobody looks."""

import time

import pytest
from starlette.testclient import TestClient

from lonnymq import Queue
from lonnymq.dashboard import DashboardSettings, asgi_app
from tests.dashboard.conftest import operator
from tests.worker.workers import eventually


def test_the_queue_is_looked_at_once_for_all_visitors_and_not_without_any(
    dsn: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.dashboard.sampler.IDLE_S", 1.0)
    app = asgi_app(dsn, access=operator, settings=DashboardSettings(sample_s=0.5))
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
