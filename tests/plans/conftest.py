"""The same sessions as in tests/sql."""

import pytest

pytest.register_assert_rewrite("tests.plans.work")

from tests.sql.conftest import queue, session  # noqa: E402

__all__ = ["queue", "session"]
