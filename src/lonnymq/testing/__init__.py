"""Helpers for tests of programs that use the queue; the pytest fixtures are in pytest_lonnymq."""

from lonnymq.testing.clock import Clock
from lonnymq.testing.recorder import AttemptFailed, ProcessedAttempt
from lonnymq.testing.redirect import redirect_app
from lonnymq.testing.run import run_until_empty

__all__ = ["AttemptFailed", "Clock", "ProcessedAttempt", "redirect_app", "run_until_empty"]
