"""A tenant with 10,000 messages does not delay tenants with a few."""

from collections import Counter

import lonnymq
from lonnymq import NewMessage

NOISY = 10_000
SMALL_TENANTS = 10
MESSAGES_EACH = 10


def main() -> None:
    with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
        queue.install()
        # The noisy tenant enqueues first: a FIFO queue would serve all its messages before the others'.
        queue.copy_in(NewMessage(channel="noisy", payload=n) for n in range(NOISY))
        queue.enqueue_many(
            NewMessage(channel=f"small-{tenant}", payload=n)
            for tenant in range(SMALL_TENANTS)
            for n in range(MESSAGES_EACH)
        )

        handled: Counter[str] = Counter()
        done_after: dict[str, int] = {}
        while len(done_after) < SMALL_TENANTS:
            batch = queue.dequeue(limit=20)
            for message in batch:
                handled[message.channel] += 1
                if message.channel != "noisy" and handled[message.channel] == MESSAGES_EACH:
                    done_after[message.channel] = handled.total()
            queue.complete(batch)

        slowest = max(done_after.values())
        ideal = MESSAGES_EACH * (SMALL_TENANTS + 1)
        print(f"all small tenants were done after {slowest} messages; perfectly equal turns need {ideal}")
        print(f"by then, {handled['noisy']} of {NOISY:,} messages of the noisy tenant were handled")
        assert slowest <= ideal + 5


if __name__ == "__main__":
    main()
