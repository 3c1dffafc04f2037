"""The same sessions as in tests/sql."""

import pytest

pytest.register_assert_rewrite("tests.plans.work")

from tests.sql.conftest import login, queue, session  # noqa: E402

__all__ = ["login", "queue", "session"]
