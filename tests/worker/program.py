"""The program of the tests' worker processes: `python -m tests.worker.program {json}`."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lonnymq import AsyncMessage, AsyncQueue, ClientSettings, Handler, Message, Retry, Worker, WorkerSettings
from tests.worker.workers import append_event

# What a payload asks for.
SLEEP, BLOCK, STUBBORN, KILL = "sleep", "block", "stubborn", "kill"


@dataclass(frozen=True)
class OnLoop:
    """Does on the event loop what the payload says: {"do": "sleep", "seconds": 1}."""

    log: str

    async def __call__(self, message: AsyncMessage) -> None:
        payload = message.payload
        # A list has the seconds of each attempt, including attempts that were lost with their process.
        seconds = payload.get("seconds")
        if isinstance(seconds, list):
            seconds = seconds[min(message.attempt + message.suspicion, len(seconds)) - 1]
        append_event(
            self.log,
            event="begin",
            id=message.id,
            attempt=message.attempt,
            suspicion=message.suspicion,
            pid=os.getpid(),
        )
        try:
            match payload["do"]:
                case "sleep":
                    await asyncio.sleep(seconds)
                case "wait":
                    await wait_for_file(Path(f"{self.log}.go"))
                case "block":
                    time.sleep(seconds)  # noqa: ASYNC251 - on purpose
                case "stubborn":
                    await never_stop(seconds)
                case "exit":
                    os._exit(seconds)
                case "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
        except asyncio.CancelledError:
            append_event(self.log, event="cancelled", id=message.id)
            raise
        append_event(self.log, event="end", id=message.id)


async def wait_for_file(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.02)


async def never_stop(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


@dataclass(frozen=True)
class InThread:
    """Blocks a thread for this many seconds, or until its lease is lost."""

    log: str

    def __call__(self, message: Message) -> None:
        append_event(self.log, event="begin", id=message.id, attempt=message.attempt, pid=os.getpid())
        until = time.monotonic() + message.payload["seconds"]
        while time.monotonic() < until:
            if message.is_lost and message.payload["do"] == "sleep":
                append_event(self.log, event="lost", id=message.id)
                return
            time.sleep(0.01)
        append_event(self.log, event="end", id=message.id)


PROGRAMS: dict[str, Callable[[str], Any]] = {"on_loop": OnLoop, "in_thread": InThread}


def worker(dsn: str, log: str, program: str, settings: dict[str, Any]) -> Worker:
    client = ClientSettings(**settings.pop("client", {}))
    max_attempts = settings.pop("max_attempts", None)
    handler = Handler(
        call=PROGRAMS[program](log),
        retry=Retry(0.0, max_s=0.0),
        timeout=settings.pop("timeout", None),
        max_attempts=max_attempts,
        name=program,
    )
    return Worker(AsyncQueue(dsn, settings=client), handler, settings=WorkerSettings(**settings))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    sys.exit(worker(**json.loads(sys.argv[1])).run())
