"""The benchmark of the dashboard opens every page, and says what it costs."""

import re

import pytest

from benchmarks import dashboard, server_costs
from lonnymq.dashboard import routes, sampler


def test_the_benchmark_opens_all_pages_of_the_dashboard() -> None:
    opened = {
        routes.find_page(page.partition("?")[0].format(message=7)) is not None for page in dashboard.PAGES
    }
    assert opened == {True}
    for page in routes.NAVIGATION:
        assert page.path in dashboard.PAGES


@pytest.mark.slow
@pytest.mark.skipif(not server_costs.PROC.is_dir(), reason="needs /proc")
@pytest.mark.heavy
def test_the_cost_of_each_page_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "IDLE_S", 0.5)
    monkeypatch.setattr(dashboard, "REFRESH_S", 0.2)
    dashboard.main(
        [
            *("--channels", "40", "--messages", "200", "--small-channels", "20"),
            "--seconds",
            "1",
            "--tabs",
            "2",
        ]
    )
    shown = capsys.readouterr().out
    assert "| page | 20 channels, 100 messages | 40 channels, 200 messages | time |" in shown
    rows = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \| ([\d,]+) \| \d+ ms \|$", shown, re.MULTILINE)
    assert [row[0] for row in rows] == list(dashboard.PAGES)
    assert all(int(small.replace(",", "")) > 0 for _, small, _ in rows)
    assert "2 tabs for 1 s: " in shown
