"""What producers put into messages, and what handlers do with them."""

import asyncio
import base64
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from lonnymq import AsyncMessage, Bury
from tests.chaos.ledger import Event, Ledger

# A message with this wish fails until its third attempt.
FAILURES = 2
# Larger than the window of PostgreSQL's compression: what is made of it needs its full size on disk.
BLOCK = base64.b64encode(os.urandom(12_000)).decode()


def payload(uid: str, do: str = "work", seconds: float = 0.0, size: int = 0) -> dict[str, Any]:
    """Return a payload; the uid comes first, where the account looks for it."""
    made: dict[str, Any] = {"uid": uid, "do": do, "seconds": seconds}
    if size:
        made["padding"] = (BLOCK * (size // len(BLOCK) + 1))[:size]
    return made


@dataclass(frozen=True)
class Handle:
    """The handler of every worker: notes that it starts, does what the payload asks, notes that it ends."""

    ledger: Ledger

    async def __call__(self, message: AsyncMessage) -> None:
        wish = message.payload
        about = {"channel": message.channel, "attempt": message.attempt, "do": wish["do"]}
        self.ledger.write(Event.STARTED, [wish["uid"]], **about)
        match wish["do"]:
            case "fail" if message.attempt <= FAILURES:
                raise RuntimeError("fails on purpose")
            case "bury":
                raise Bury("its payload asks for it")
            case "exit":
                os._exit(70)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                time.sleep(wish["seconds"])  # noqa: ASYNC251 - to keep the loop from its heartbeats
            case _:
                await asyncio.sleep(wish["seconds"])
        self.ledger.write(Event.ENDED, [wish["uid"]], **about)
