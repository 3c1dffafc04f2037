"""A measuring bench on the tests' server, so small that it proves nothing but that everything runs."""

import dataclasses
from typing import Any

import pytest

from benchmarks.bench import EFFORTS, Bench
from benchmarks.server import Server


@pytest.fixture
def small_bench(server: Any) -> Bench:
    effort = dataclasses.replace(EFFORTS["smoke"], window_s=0.1)
    return Bench(Server(server.dsn), effort, progress=lambda line: None)
