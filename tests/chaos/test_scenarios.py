"""Tests of the list of scenarios; running them takes minutes."""

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


def test_an_unknown_scenario_is_refused_with_a_list_of_scenarios() -> None:
    with pytest.raises(SystemExit, match="'nothing'; there are: failover-synchronous, "):
        main(["--only", "nothing"])


def test_scenarios_are_listed_without_running_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "failover", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "failover-synchronous",
        "failover-asynchronous",
    ]
