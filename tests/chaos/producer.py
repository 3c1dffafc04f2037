"""A producer as a process of its own: `python -m tests.chaos.producer '{...}'`.

For each create it writes down that it tries, and then what it learned: acknowledged (synced to disk), refused
or unsure. It goes on until SIGTERM.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg

from lonnymq import ClientSettings, ConnectionLost, LonnyError, NewMessage, Queue
from tests.chaos.ledger import Event, Ledger
from tests.chaos.orphan import end_with_parent
from tests.chaos.payloads import payload

BATCH = 5
# A scheduled message has this long to be cancelled.
DELAY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a producer is to do; `wishes` maps what handlers shall do to its weight."""

    dsn: str
    ledger: str
    name: str
    seed: int
    channels: list[str]
    per_second: float
    wishes: dict[str, float]
    seconds: float
    size: int = 0
    most: int | None = None
    max_attempts: int | None = None
    client: dict[str, Any] = field(default_factory=dict)


class Producer:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.ledger = Ledger(order.ledger)
        self.random = random.Random(f"{order.seed} {order.name}")
        self.queue = Queue(order.dsn, settings=ClientSettings(**order.client))
        self.is_asked_to_stop = threading.Event()
        self.count = 0

    def run(self) -> None:
        """Create at the given rate; after an interruption, go on from now rather than catch up."""
        next_at = time.monotonic()
        while not self.is_asked_to_stop.is_set() and (
            self.order.most is None or self.count < self.order.most
        ):
            made = self.create()
            next_at = max(next_at + made / self.order.per_second, time.monotonic() - 0.5)
            self.is_asked_to_stop.wait(max(0.0, next_at - time.monotonic()))
        if self.order.most is not None:
            self.is_asked_to_stop.wait()

    def create(self) -> int:
        """Create one message or a few at once, and return how many."""
        wishes, weights = list(self.order.wishes), list(self.order.wishes.values())
        [do] = self.random.choices(wishes, weights)
        count = BATCH if do == "work" and self.order.most is None and self.random.random() < 0.1 else 1
        messages = [self.message(do) for _ in range(count)]
        uids = [message.payload["uid"] for message in messages]
        self.ledger.write(Event.TRIED, uids, channel=messages[0].channel, do=do)
        try:
            created = self.queue.enqueue_many(messages) if count > 1 else [self.enqueue(messages[0])]
        except (LonnyError, psycopg.Error, OSError) as error:
            self.ledger.write(judged(error), uids, error=f"{type(error).__name__}: {error}"[:300])
            self.is_asked_to_stop.wait(0.05)
            return count
        self.ledger.write(Event.ACKNOWLEDGED, uids, is_synced=True)
        if do == "cancel":
            self.cancel(created[0].id)
        return count

    def message(self, do: str) -> NewMessage:
        # The process id keeps the uids of a producer apart from those of its predecessor.
        uid = f"{self.order.name}.{os.getpid()}.{self.count}"
        self.count += 1
        return NewMessage(
            channel=self.random.choice(self.order.channels),
            payload=payload(uid, do, self.order.seconds, self.order.size),
            delay=DELAY_S if do == "cancel" else None,
            max_attempts=self.order.max_attempts,
        )

    def enqueue(self, message: NewMessage) -> Any:
        return self.queue.enqueue(
            message.channel, message.payload, delay=message.delay, max_attempts=message.max_attempts
        )

    def cancel(self, message_id: int | None) -> None:
        """If this fails, the message is worked instead; the account allows both."""
        try:
            self.queue.cancel([] if message_id is None else [message_id])
        except (LonnyError, psycopg.Error, OSError):
            return


def judged(error: Exception) -> Event:
    """Whether the error proves that nothing was created. An SQLSTATE does, unless it ended the session."""
    if isinstance(error, ConnectionLost):
        return Event.UNSURE if error.may_have_happened else Event.REFUSED
    if isinstance(error, LonnyError):
        return Event.REFUSED
    sqlstate = getattr(error, "sqlstate", None)
    is_definite = sqlstate is not None and not sqlstate.startswith(("08", "57P"))
    return Event.REFUSED if is_definite else Event.UNSURE


if __name__ == "__main__":
    end_with_parent()
    producer = Producer(Order(**json.loads(sys.argv[1])))
    signal.signal(signal.SIGTERM, lambda *_: producer.is_asked_to_stop.set())
    producer.run()
