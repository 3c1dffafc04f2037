"""Dozens of contents of several megabytes beside small ones of another tenant, through a slow link."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage
from tests.proxy import Proxy

BYTES_PER_S = 8_000_000
SIZES = {5_000_000: 16, 8_000_000: 6, 20_000_000: 2}


def play(run: Run) -> Account:
    server = servers.start(run)
    stage = Stage(run, server.dsn, caps={"big": 4})
    link = run.cleanup.enter_context(Proxy(server.dsn))
    link.bytes_per_s = BYTES_PER_S
    worker = stage.worker(dsn=link.dsn, concurrency=8, lease_s=10)
    stage.producer(channels=["small"], per_second=20.0)
    # Before the large ones come, the worker must be there.
    began = time.monotonic()
    stage.until(lambda: not stage.idle_since(began), 30, "the producer and the worker to begin")
    trouble_at = time.monotonic()
    for size, most in SIZES.items():
        wishes = {"work": 1.0}
        stage.producer(
            name=f"of {size} bytes", channels=["big"], size=size, most=most, per_second=5.0, wishes=wishes
        )
    stage.pause(run.seconds)
    stage.until(lambda: big_ones_left(stage) == 0, 120, "the large messages to be worked")
    run.say(f"{sum(size * most for size, most in SIZES.items()) // 1_000_000} MB were read")
    stage.require_flow(5, "the small ones", since=trouble_at, workers=[worker], channels=["small"])
    return stage.settle()


def big_ones_left(stage: Stage) -> int:
    """Return how many of the large messages are still to be worked."""
    ended = {one.uid for worker in stage.workers for one in worker.entries() if one.event == "ended"}
    return sum(SIZES.values()) - sum(uid.startswith("of ") for uid in ended)


SCENARIO = Scenario("big-contents", "contents of 5 to 20 MB beside small ones, through a slow link", 30, play)
