"""The profile of the time between a commit and its handler."""

from typing import Any

import pytest

from benchmarks import latency_profile

pytestmark = pytest.mark.slow


def test_every_step_of_a_wake_up_is_measured(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dsn", server.dsn, "--messages", "20", "--per-s", "20"]
    assert latency_profile.main(arguments) == 0
    printed = capsys.readouterr().out
    for step in latency_profile.STEPS:
        assert f"| {step} |" in printed
    assert "0 messages." not in printed.splitlines()
