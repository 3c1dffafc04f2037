"""The pytest plugin as users have it: their test files, run by pytest in its own process."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from lonnymq.embedded import BinariesNotFound, binaries

Ended = subprocess.CompletedProcess[str]
RunPytest = Callable[..., Ended]

APP = """
    import lonnymq

    app = lonnymq.App(lonnymq.Queue("postgresql://production.invalid/shop"))
    shipped = []

    @app.task(max_attempts=3)
    def ship(order: int) -> None:
        if order < 0:
            raise ValueError(f"there is no order {order}")
        shipped.append(order)

    @app.cron("0 3 * * *", channel="reports")
    async def report() -> None:
        shipped.append("report")
"""
TESTS = """
    from datetime import UTC, datetime, timedelta

    import pytest
    from lonnymq.testing import redirect_app, run_until_empty

    import shop

    @pytest.fixture(autouse=True)
    def queue(lonnymq_queue):
        shop.shipped.clear()
        with redirect_app(shop.app, lonnymq_queue):
            yield lonnymq_queue

    def test_an_order_is_shipped():
        shop.ship.enqueue("acme", 7)
        run_until_empty(shop.app)
        assert shop.shipped == [7]

    def test_each_test_has_a_queue_of_its_own(queue):
        assert queue.status().waiting == 0
        assert run_until_empty(shop.app) == []

    def test_an_order_waits_for_its_time(lonnymq_clock):
        shop.ship.options(delay=timedelta(hours=2)).enqueue("acme", 8)
        assert run_until_empty(shop.app) == []
        lonnymq_clock.advance(hours=2)
        run_until_empty(shop.app)
        assert shop.shipped == [8]

    def test_reports_come_every_night(lonnymq_clock):
        lonnymq_clock.move_to(datetime(2100, 1, 1, 12, tzinfo=UTC))
        run_until_empty(shop.app, clock=lonnymq_clock, until=timedelta(days=3))
        assert shop.shipped == ["report"] * 3

    def test_an_order_that_does_not_exist():
        shop.ship.enqueue("acme", -1)
        run_until_empty(shop.app)
"""


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    def run_pytest(
        *arguments: str, dsn: str | None = None, **files: str
    ) -> "subprocess.CompletedProcess[str]":
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment.pop("LONNYMQ_TEST_DSN", None)
        if dsn is not None:
            environment["LONNYMQ_TEST_DSN"] = dsn
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run_pytest


def test_a_users_tests_run_and_a_failing_handler_fails_its_test(
    run_pytest: RunPytest, lonnymq_server_dsn: str
) -> None:
    ended = run_pytest(dsn=lonnymq_server_dsn, shop=APP, test_shop=TESTS)
    assert "1 failed, 4 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "ValueError: there is no order -1" in ended.stdout
    assert "shop.py" in ended.stdout


def test_without_a_server_an_embedded_one_is_started(run_pytest: RunPytest) -> None:
    try:
        binaries.find("auto")
    except BinariesNotFound:
        pytest.skip("needs a PostgreSQL to start")
    tests = """
        def test_the_queue_is_installed(lonnymq_queue, lonnymq_schema):
            assert lonnymq_queue.schema == lonnymq_schema == "jobs"
            lonnymq_queue.enqueue("acme", 1)
            assert lonnymq_queue.dequeue()[0].complete() == "completed"
    """
    conftest = """
        import pytest

        @pytest.fixture(scope="session")
        def lonnymq_schema():
            return "jobs"
    """
    ended = run_pytest(
        # From platformdirs, when the embedded server is imported without XDG_RUNTIME_DIR.
        *("-W", "ignore:.*falling back to /"),
        conftest=conftest,
        test_queue=tests,
    )
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_plugin_loads_nothing_until_a_test_uses_it(run_pytest: RunPytest) -> None:
    tests = """
        import sys

        def test_what_is_loaded():
            assert "pytest_lonnymq" in sys.modules
            assert "lonnymq" not in sys.modules and "psycopg" not in sys.modules
    """
    ended = run_pytest(test_nothing=tests)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
