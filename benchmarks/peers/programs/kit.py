"""What the programs of all peers in Python share: the order, the messages, their handling, the meter.

A program is told what to do by an order in its environment, as JSON. What it has handled it writes as JSON
lines into a named pipe; a line fits into one atomic write, so many processes can share the pipe.
"""

import asyncio
import itertools
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

ORDER = "LONNYMQ_BENCH_ORDER"
FLUSH_S = 0.02
# Of events in a line of at most 4096 bytes, which a pipe takes whole.
EVENTS_PER_LINE = 40
PAD = "x" * 60

Payload = dict[str, Any]


@dataclass(frozen=True)
class Policy:
    """What a tenant may do; None: whatever it likes."""

    per_s: int | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True)
class Order:
    """What a program is told to do."""

    do: str
    # A name that no other stage has used, for servers that are shared by all stages.
    place: str = ""
    tenants: dict[str, Policy] = field(default_factory=dict)
    # enqueue: tenants and how many messages, in that order.
    groups: list[tuple[str, int]] = field(default_factory=list)
    how: str = "bulk"
    per_s: float = 0.0
    sleep_ms: int = 0
    # Sleeps from half as long to half as long again, so that messages do not end together.
    is_uneven: bool = False
    # In bulk, no more is sent when this is over; None: all.
    window_s: float | None = None
    # work
    processes: int = 1
    batch: int | None = None
    # The sooner a dead worker should be noticed, the smaller; None: as the peer has it by default.
    lease_s: int | None = None
    meter: str = ""
    is_traced: bool = False

    @property
    def is_tenanted(self) -> bool:
        return len(self.tenants) > 1

    def messages(self) -> Iterator[tuple[str, Payload]]:
        for tenant, count in self.groups:
            for number in range(count):
                yield tenant, self.message(f"{tenant}/{number}", number)

    def message(self, tag: str, number: int = 0) -> Payload:
        part = 0.5 + number % 11 / 10 if self.is_uneven else 1
        return {"tag": tag, "sleep_ms": round(self.sleep_ms * part), "pad": PAD}


def order() -> Order:
    told = json.loads(os.environ[ORDER])
    told["tenants"] = {name: Policy(**policy) for name, policy in told["tenants"].items()}
    return Order(**told)


def encoded(payload: Payload) -> bytes:
    return json.dumps(payload).encode()


class Meter:
    """Tells the harness what this process has handled."""

    def __init__(self, told: Order) -> None:
        self.pid = os.getpid()
        self.is_traced = told.is_traced
        # Who may be killed says everything at once.
        self.is_prompt = told.lease_s is not None
        # Some peers have threads, and two of them would count the same message.
        self.lock = threading.Lock()
        self.count = 0
        self.events: deque[tuple[int, str, int]] = deque()
        self.pipe = os.open(told.meter, os.O_WRONLY)
        threading.Thread(target=self._report, daemon=True).start()

    def began(self, tag: str) -> None:
        with self.lock:
            self.count += 1
        if self.is_traced:
            self._note(tag, 0)

    def ended(self, tag: str) -> None:
        if self.is_traced:
            self._note(tag, 1)

    def _note(self, tag: str, is_end: int) -> None:
        event = (time.monotonic_ns(), tag, is_end)
        if self.is_prompt:
            self.say(events=[event])
        else:
            self.events.append(event)

    def say(self, **words: object) -> None:
        os.write(self.pipe, json.dumps({"pid": self.pid} | words).encode() + b"\n")

    def _report(self) -> None:
        said = 0
        while True:
            time.sleep(FLUSH_S)
            # Taken one by one, so that none is lost that is noted meanwhile.
            while count := min(len(self.events), EVENTS_PER_LINE):
                self.say(events=[self.events.popleft() for _ in range(count)])
            if not self.is_traced and self.count != said:
                said = self.count
                self.say(at=time.monotonic_ns(), count=said)


_meters: dict[int, Meter] = {}
_making = threading.Lock()


def meter() -> Meter:
    """Return this process's own, also after a fork."""
    pid = os.getpid()
    # The first messages may come to several threads at once.
    if pid not in _meters:
        with _making:
            if pid not in _meters:
                _meters[pid] = Meter(order())
    return _meters[pid]


def wait_for_go() -> None:
    """Say that everything is imported, and wait until all other processes are there too."""
    meter().say(is_ready=True)
    sys.stdin.readline()


async def handle(payload: Payload) -> None:
    """Do what every handler of every peer does: nothing, or sleep."""
    now = meter()
    now.began(payload["tag"])
    if payload["sleep_ms"]:
        await asyncio.sleep(payload["sleep_ms"] / 1000)
    now.ended(payload["tag"])


def handle_blocking(payload: Payload) -> None:
    now = meter()
    now.began(payload["tag"])
    if payload["sleep_ms"]:
        time.sleep(payload["sleep_ms"] / 1000)
    now.ended(payload["tag"])


async def send(
    told: Order,
    one: Callable[[str, Payload], Awaitable[object]],
    many: Callable[[list[tuple[str, Payload]]], Awaitable[object]],
    at_once: int = 1_000,
) -> None:
    """Enqueue as told, and print how long it took; `one` and `many` are the peer's own calls."""
    if told.how == "bulk":
        await send_batches(told, many, at_once)
        return
    if told.how == "paced":
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        for number, (tenant, _) in enumerate(told.messages()):
            await asyncio.sleep(max(0.0, began_at + number / told.per_s - time.monotonic()))
            await one(tenant, told.message(str(time.monotonic_ns())))
    else:
        messages = list(told.messages())
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        for tenant, payload in messages:
            await one(tenant, payload)
    count = sum(count for _, count in told.groups)
    finished(count, time.monotonic() - began_at, time.process_time() - began_cpu_s)


async def send_batches(
    told: Order, many: Callable[[list[tuple[str, Payload]]], Awaitable[object]], at_once: int
) -> None:
    """Send batch after batch; to make them is no work of the peer's, and not counted."""
    count, took_s, cpu_s = 0, 0.0, 0.0
    for batch in batched(told, at_once):
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        await many(batch)
        count += len(batch)
        took_s += time.monotonic() - began_at
        cpu_s += time.process_time() - began_cpu_s
        if told.window_s is not None and took_s > told.window_s:
            break
    finished(count, took_s, cpu_s)


def batched(told: Order, size: int) -> Iterator[list[tuple[str, Payload]]]:
    messages = told.messages()
    while batch := list(itertools.islice(messages, size)):
        yield batch


def finished(count: int, took_s: float, cpu_s: float) -> None:
    print(json.dumps({"count": count, "took_s": took_s, "cpu_s": cpu_s}), flush=True)


def run(**actions: Callable[[Order], Awaitable[None] | None]) -> None:
    """Do what the order says: install, enqueue or work."""
    told = order()
    doing = actions[told.do](told)
    if doing is not None:
        asyncio.run(_awaited(doing))


async def _awaited(doing: Awaitable[None]) -> None:
    await doing
