"""Shared by the Python programs of all peers: reading the command, sending and handling messages, progress.

A program is told what to do by a command in its environment, as JSON. It reports the messages that it handles
as JSON lines into a named pipe. Each line fits into one atomic write, so many processes can share the pipe.
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

COMMAND_VARIABLE = "LONNYMQ_BENCH_COMMAND"
FLUSH_S = 0.02
# A line with this many events has at most 4,096 bytes, which a pipe accepts atomically.
EVENTS_PER_LINE = 40
PAD = "x" * 60

Payload = dict[str, Any]


@dataclass(frozen=True)
class TenantLimits:
    """A tenant's rate limit and concurrency cap; None is no limit."""

    per_s: int | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True)
class Command:
    """What a program has to do."""

    # install, enqueue or work.
    action: str
    # A name that no other deployment has used, for servers that several deployments share.
    namespace: str = ""
    tenants: dict[str, TenantLimits] = field(default_factory=dict)
    # enqueue: tenants and their numbers of messages, in this order.
    groups: list[tuple[str, int]] = field(default_factory=list)
    # bulk, one (one by one) or paced.
    mode: str = "bulk"
    per_s: float = 0.0
    sleep_ms: int = 0
    # Handlers sleep between half and one and a half times as long, so that messages do not end together.
    is_uneven: bool = False
    # In bulk mode, sending stops after this time; None: never.
    window_s: float | None = None
    # work
    processes: int = 1
    batch: int | None = None
    # How soon a dead worker should be noticed; None: the peer's default.
    lease_s: int | None = None
    progress_pipe: str = ""
    is_traced: bool = False

    @property
    def has_tenants(self) -> bool:
        return len(self.tenants) > 1

    def messages(self) -> Iterator[tuple[str, Payload]]:
        for tenant, count in self.groups:
            for number in range(count):
                yield tenant, self.message(f"{tenant}/{number}", number)

    def message(self, tag: str, number: int = 0) -> Payload:
        part = 0.5 + number % 11 / 10 if self.is_uneven else 1
        return {"tag": tag, "sleep_ms": round(self.sleep_ms * part), "pad": PAD}


def read_command() -> Command:
    fields = json.loads(os.environ[COMMAND_VARIABLE])
    fields["tenants"] = {name: TenantLimits(**limits) for name, limits in fields["tenants"].items()}
    return Command(**fields)


def encode(payload: Payload) -> bytes:
    return json.dumps(payload).encode()


class ProgressWriter:
    """Reports the messages that this process handles."""

    def __init__(self, command: Command) -> None:
        self.pid = os.getpid()
        self.is_traced = command.is_traced
        # A process that may be killed reports each event immediately.
        self.is_immediate = command.lease_s is not None
        # Some peers have threads, which must not count the same message twice.
        self.lock = threading.Lock()
        self.count = 0
        self.events: deque[tuple[int, str, int]] = deque()
        self.pipe = os.open(command.progress_pipe, os.O_WRONLY)
        threading.Thread(target=self._run, daemon=True).start()

    def message_began(self, tag: str) -> None:
        with self.lock:
            self.count += 1
        if self.is_traced:
            self._add_event(tag, 0)

    def message_ended(self, tag: str) -> None:
        if self.is_traced:
            self._add_event(tag, 1)

    def _add_event(self, tag: str, is_end: int) -> None:
        event = (time.monotonic_ns(), tag, is_end)
        if self.is_immediate:
            self.write(events=[event])
        else:
            self.events.append(event)

    def write(self, **fields: object) -> None:
        os.write(self.pipe, json.dumps({"pid": self.pid} | fields).encode() + b"\n")

    def _run(self) -> None:
        written = 0
        while True:
            time.sleep(FLUSH_S)
            # Events are removed one by one, so that none added meanwhile is lost.
            while count := min(len(self.events), EVENTS_PER_LINE):
                self.write(events=[self.events.popleft() for _ in range(count)])
            if not self.is_traced and self.count != written:
                written = self.count
                self.write(at=time.monotonic_ns(), count=written)


_writers: dict[int, ProgressWriter] = {}
_writers_lock = threading.Lock()


def progress_writer() -> ProgressWriter:
    """Return the writer of this process, which is a new one after a fork."""
    pid = os.getpid()
    # Several threads may handle the first messages at the same time.
    if pid not in _writers:
        with _writers_lock:
            if pid not in _writers:
                _writers[pid] = ProgressWriter(read_command())
    return _writers[pid]


def wait_for_go() -> None:
    """Report that everything is imported, and wait until all other processes are ready."""
    progress_writer().write(is_ready=True)
    sys.stdin.readline()


async def handle(payload: Payload) -> None:
    """The handler of every peer: do nothing, or sleep."""
    writer = progress_writer()
    writer.message_began(payload["tag"])
    if payload["sleep_ms"]:
        await asyncio.sleep(payload["sleep_ms"] / 1000)
    writer.message_ended(payload["tag"])


def handle_blocking(payload: Payload) -> None:
    writer = progress_writer()
    writer.message_began(payload["tag"])
    if payload["sleep_ms"]:
        time.sleep(payload["sleep_ms"] / 1000)
    writer.message_ended(payload["tag"])


async def send(
    command: Command,
    one: Callable[[str, Payload], Awaitable[object]],
    many: Callable[[list[tuple[str, Payload]]], Awaitable[object]],
    batch_size: int = 1_000,
) -> None:
    """Enqueue the messages and print how long it took; `one` and `many` are the peer's own calls."""
    if command.mode == "bulk":
        await send_batches(command, many, batch_size)
        return
    if command.mode == "paced":
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        for number, (tenant, _) in enumerate(command.messages()):
            await asyncio.sleep(max(0.0, began_at + number / command.per_s - time.monotonic()))
            await one(tenant, command.message(str(time.monotonic_ns())))
    else:
        messages = list(command.messages())
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        for tenant, payload in messages:
            await one(tenant, payload)
    count = sum(count for _, count in command.groups)
    print_result(count, time.monotonic() - began_at, time.process_time() - began_cpu_s)


async def send_batches(
    command: Command, many: Callable[[list[tuple[str, Payload]]], Awaitable[object]], batch_size: int
) -> None:
    """Send batch after batch; creating the batches is not timed."""
    count, took_s, cpu_s = 0, 0.0, 0.0
    for batch in batches(command, batch_size):
        began_at, began_cpu_s = time.monotonic(), time.process_time()
        await many(batch)
        count += len(batch)
        took_s += time.monotonic() - began_at
        cpu_s += time.process_time() - began_cpu_s
        if command.window_s is not None and took_s > command.window_s:
            break
    print_result(count, took_s, cpu_s)


def batches(command: Command, size: int) -> Iterator[list[tuple[str, Payload]]]:
    messages = command.messages()
    while batch := list(itertools.islice(messages, size)):
        yield batch


def print_result(count: int, took_s: float, cpu_s: float) -> None:
    print(json.dumps({"count": count, "took_s": took_s, "cpu_s": cpu_s}), flush=True)


def run(**actions: Callable[[Command], Awaitable[None] | None]) -> None:
    """Run the action of the command: install, enqueue or work."""
    command = read_command()
    result = actions[command.action](command)
    if result is not None:
        asyncio.run(_await(result))


async def _await(awaitable: Awaitable[None]) -> None:
    await awaitable
