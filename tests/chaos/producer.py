"""A producer in its own process: `python -m tests.chaos.producer '{...}'`.

It records each create in its ledger before it is tried, and then the outcome: acknowledged (synced to disk),
refused or unsure. It runs until SIGTERM.
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
from tests.chaos.parent import exit_with_parent
from tests.chaos.payloads import payload

BATCH = 5
# A message to be cancelled is scheduled this far ahead.
DELAY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class ProducerSpec:
    """A producer's configuration; `actions` maps what handlers are asked to do to its relative frequency."""

    dsn: str
    ledger: str
    name: str
    seed: int
    channels: list[str]
    per_second: float
    actions: dict[str, float]
    seconds: float
    size: int = 0
    most: int | None = None
    max_attempts: int | None = None
    client: dict[str, Any] = field(default_factory=dict)


class Producer:
    def __init__(self, spec: ProducerSpec) -> None:
        self.spec = spec
        self.ledger = Ledger(spec.ledger)
        self.random = random.Random(f"{spec.seed} {spec.name}")
        self.queue = Queue(spec.dsn, settings=ClientSettings(**spec.client))
        self.is_asked_to_stop = threading.Event()
        self.count = 0

    def run(self) -> None:
        """Create messages at the given rate; after an interruption, do not catch up."""
        next_at = time.monotonic()
        while not self.is_asked_to_stop.is_set() and (self.spec.most is None or self.count < self.spec.most):
            count = self.create()
            next_at = max(next_at + count / self.spec.per_second, time.monotonic() - 0.5)
            self.is_asked_to_stop.wait(max(0.0, next_at - time.monotonic()))
        if self.spec.most is not None:
            self.is_asked_to_stop.wait()

    def create(self) -> int:
        """Create one message or a few at once, and return how many."""
        actions, weights = list(self.spec.actions), list(self.spec.actions.values())
        [do] = self.random.choices(actions, weights)
        count = BATCH if do == "work" and self.spec.most is None and self.random.random() < 0.1 else 1
        messages = [self.message(do) for _ in range(count)]
        uids = [message.payload["uid"] for message in messages]
        self.ledger.write(Event.TRIED, uids, channel=messages[0].channel, do=do)
        try:
            created = self.queue.enqueue_many(messages) if count > 1 else [self.enqueue(messages[0])]
        except (LonnyError, psycopg.Error, OSError) as error:
            self.ledger.write(classify_error(error), uids, error=f"{type(error).__name__}: {error}"[:300])
            self.is_asked_to_stop.wait(0.05)
            return count
        self.ledger.write(Event.ACKNOWLEDGED, uids, is_synced=True)
        if do == "cancel":
            self.cancel(created[0].id)
        return count

    def message(self, do: str) -> NewMessage:
        # The process id distinguishes the uids of a restarted producer from its predecessor's.
        uid = f"{self.spec.name}.{os.getpid()}.{self.count}"
        self.count += 1
        return NewMessage(
            channel=self.random.choice(self.spec.channels),
            payload=payload(uid, do, self.spec.seconds, self.spec.size),
            delay=DELAY_S if do == "cancel" else None,
            max_attempts=self.spec.max_attempts,
        )

    def enqueue(self, message: NewMessage) -> Any:
        return self.queue.enqueue(
            message.channel, message.payload, delay=message.delay, max_attempts=message.max_attempts
        )

    def cancel(self, message_id: int | None) -> None:
        """Cancel a message; if this fails, it is handled instead, and the account allows both."""
        try:
            self.queue.cancel([] if message_id is None else [message_id])
        except (LonnyError, psycopg.Error, OSError):
            return


def classify_error(error: Exception) -> Event:
    """Return REFUSED if the error proves that nothing was created, as most SQLSTATEs do; otherwise UNSURE."""
    if isinstance(error, ConnectionLost):
        return Event.UNSURE if error.may_have_happened else Event.REFUSED
    if isinstance(error, LonnyError):
        return Event.REFUSED
    sqlstate = getattr(error, "sqlstate", None)
    is_definite = sqlstate is not None and not sqlstate.startswith(("08", "57P"))
    return Event.REFUSED if is_definite else Event.UNSURE


if __name__ == "__main__":
    exit_with_parent()
    producer = Producer(ProducerSpec(**json.loads(sys.argv[1])))
    signal.signal(signal.SIGTERM, lambda *_: producer.is_asked_to_stop.set())
    producer.run()
