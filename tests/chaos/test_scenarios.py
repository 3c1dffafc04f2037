"""What can be said of the scenarios without running them, which takes minutes."""

import re
from pathlib import Path

import pytest

from tests.chaos.__main__ import main
from tests.chaos.scenarios import SCENARIOS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "chaos.md"


def test_the_page_describes_every_scenario() -> None:
    scenarios, _, _ = PAGE.read_text(encoding="utf-8").partition("## The account")
    described = re.findall(r"^\| `([a-z-]+)` \|", scenarios, re.MULTILINE)
    assert described == [one.name for one in SCENARIOS]


def test_a_scenario_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match="'nothing'; there are: failover-synchronous, "):
        main(["--only", "nothing"])


def test_scenarios_are_listed_without_being_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "failover", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "failover-synchronous",
        "failover-asynchronous",
    ]
