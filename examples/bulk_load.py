"""Load 100,000 messages with COPY: all or none, only once, and without delaying other tenants."""

import time
from collections.abc import Iterator

import lonnymq
from lonnymq import NewMessage, PublishOutcome

MESSAGES = 100_000


def newsletters() -> Iterator[NewMessage]:
    """Yield the messages one by one, so that they are never all in memory."""
    for reader in range(MESSAGES):
        yield NewMessage(channel="newsletter", payload={"reader": reader})


def main() -> None:
    with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
        queue.install()

        began = time.monotonic()
        first = queue.copy_in(newsletters(), publication="newsletter-47")
        elapsed = time.monotonic() - began
        print(f"{first.created:,} messages {first.outcome} in {elapsed:.1f} s")
        assert first.created == MESSAGES

        # If the program is restarted, it can safely load everything again.
        again = queue.copy_in(newsletters(), publication="newsletter-47")
        print(f"second load: {again.outcome}")
        assert again.outcome is PublishOutcome.ALREADY_PUBLISHED
        assert queue.status().waiting == MESSAGES

        # A single message of another tenant does not wait behind the bulk load.
        queue.enqueue("acme", {"reset": "password"})
        channels = [message.channel for message in queue.dequeue(limit=2)]
        print(f"the next two messages come from {' and '.join(sorted(channels))}")
        assert sorted(channels) == ["acme", "newsletter"]


if __name__ == "__main__":
    main()
