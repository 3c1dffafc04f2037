"""Dequeue and complete in batches of 100 on four connections, over 1,000 channels."""

from benchmarks.cases.drain_one_channel import run_over
from benchmarks.harness import Case, Harness, Row

TITLE = "dequeue + complete, batch 100, 4 connections, 1,000 channels"
NAME = "drain-1000-channels"


def run(harness: Harness) -> list[Row]:
    return run_over(harness, NAME, TITLE, channels=1_000, at_least={"bare": 0.5, "channel-row": 12.0})


CASE = Case(NAME, TITLE, run)
