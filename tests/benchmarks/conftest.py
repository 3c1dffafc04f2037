"""A benchmark harness on the tests' server, so small that it only shows that everything runs."""

import dataclasses
from typing import Any

import pytest

from benchmarks.harness import EFFORTS, Harness
from benchmarks.server import Server


@pytest.fixture
def small_harness(server: Any) -> Harness:
    effort = dataclasses.replace(EFFORTS["smoke"], window_s=0.1)
    return Harness(Server(server.dsn), effort, progress=lambda line: None)
