"""Large contents of one tenant and small ones of another share a slow link."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario
from tests.proxy import Proxy

BYTES_PER_S = 8_000_000
SIZES = {5_000_000: 16, 8_000_000: 6, 20_000_000: 2}


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn, caps={"big": 4})
    link = run.cleanup.enter_context(Proxy(server.dsn))
    link.bytes_per_s = BYTES_PER_S
    worker = harness.worker(dsn=link.dsn, concurrency=8, lease_s=10)
    harness.producer(channels=["small"], per_second=20.0)
    # The worker must be running before the large messages arrive.
    began = time.monotonic()
    harness.until(lambda: not harness.idle_since(began), 30, "the producer and the worker to start")
    large_since = time.monotonic()
    for size, most in SIZES.items():
        actions = {"work": 1.0}
        harness.producer(
            name=f"of {size} bytes", channels=["big"], size=size, most=most, per_second=5.0, actions=actions
        )
    harness.pause(run.seconds)
    harness.until(lambda: count_large_left(harness) == 0, 120, "the large messages to be completed")
    run.say(f"{sum(size * most for size, most in SIZES.items()) // 1_000_000} MB were read")
    harness.require_flow(5, "small messages", since=large_since, workers=[worker], channels=["small"])
    return harness.finish()


def count_large_left(harness: Harness) -> int:
    """Return how many large messages have not been handled yet."""
    ended = {one.uid for worker in harness.workers for one in worker.entries() if one.event == "ended"}
    return sum(SIZES.values()) - sum(uid.startswith("of ") for uid in ended)


SCENARIO = Scenario(
    "big-contents", "contents of 5 to 20 MB next to small ones, through a slow link", 30, execute
)
