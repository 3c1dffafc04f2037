"""For tests of programs that use the queue; the pytest fixtures are in pytest_lonnymq."""

from lonnymq.testing.clock import Clock
from lonnymq.testing.record import AttemptFailed, WorkedAttempt
from lonnymq.testing.redirect import redirected
from lonnymq.testing.run import run_until_empty

__all__ = ["AttemptFailed", "Clock", "WorkedAttempt", "redirected", "run_until_empty"]
