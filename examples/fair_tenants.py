"""A tenant with 10,000 messages does not stand in the way of a tenant with one."""

from collections import Counter

import lonnymq
from lonnymq import NewMessage

NOISY = 10_000
SMALL_TENANTS = 10
EACH = 10


def main() -> None:
    with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
        queue.install()
        # The noisy tenant comes first: a plain queue would serve all of it before anybody else.
        queue.copy_in(NewMessage(channel="noisy", payload=n) for n in range(NOISY))
        queue.enqueue_many(
            NewMessage(channel=f"small-{tenant}", payload=n)
            for tenant in range(SMALL_TENANTS)
            for n in range(EACH)
        )

        handled: Counter[str] = Counter()
        done_after: dict[str, int] = {}
        while len(done_after) < SMALL_TENANTS:
            batch = queue.dequeue(limit=20)
            for message in batch:
                handled[message.channel] += 1
                if message.channel != "noisy" and handled[message.channel] == EACH:
                    done_after[message.channel] = handled.total()
            queue.complete(batch)

        slowest = max(done_after.values())
        ideal = EACH * (SMALL_TENANTS + 1)
        print(f"all small tenants are done after {slowest} messages; taking turns exactly needs {ideal}")
        print(f"the noisy tenant had {handled['noisy']} of {NOISY} handled by then")
        assert slowest <= ideal + 5


if __name__ == "__main__":
    main()
