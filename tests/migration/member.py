"""A process of a fleet that uses one release: `python -m tests.migration.member RELEASE ROLE DSN LOG`.

It appends the ids of messages to its log, and ends with an error as soon as a call fails.
"""

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

# How long a call may wait for a lock: much longer than a migration holds one, much shorter than the test.
LOCK_TIMEOUT = "-c lock_timeout=20s"


def main(release: str, role: str, dsn: str, log: str) -> int:
    sys.path.insert(0, release)
    import lonnymq

    assert lonnymq.__file__.startswith(release), lonnymq.__file__
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(*ids: object) -> None:
        os.write(descriptor, "".join(f"{one}\n" for one in ids).encode())

    if role == "migrate":
        with lonnymq.Queue(dsn) as queue:
            record(queue.migrate().state)
        return 0
    bounded = (
        f"{dsn}{'&' if '?' in dsn else '?'}options={LOCK_TIMEOUT.replace(' ', '%20').replace('=', '%3D')}"
    )
    if role == "worker":

        async def handle(message: "lonnymq.AsyncMessage") -> None:
            await asyncio.sleep(0.001)
            record(message.id)

        settings = lonnymq.WorkerSettings(concurrency=4, prefetch=20, lease_s=30)
        return lonnymq.Worker(bounded, handle, settings=settings).run()
    with lonnymq.Queue(bounded) as queue:
        while not Path(f"{log}.stop").exists():
            if role == "noting":
                # The new signature, which only the later release has.
                with queue.caller.source.connection() as connection:
                    arguments = "p_channel => 'n', p_content => '1', p_note => 'x'"
                    query = f"select {queue.schema}.message_create({arguments})"
                    assert connection.execute(query.encode()).fetchone() == ("created",)
            record(queue.enqueue("a", 1).id)
            [created] = queue.enqueue_many([lonnymq.NewMessage(channel="b", payload=2)])
            record(created.id)
            queue.status()
            time.sleep(0.005)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
