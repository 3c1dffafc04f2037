"""Payloads of messages, and the handler that does what they ask."""

import asyncio
import base64
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from lonnymq import AsyncMessage, Bury
from tests.chaos.evidence import connect
from tests.chaos.ledger import Event, Ledger

# How often a message with the action "fail" fails before it succeeds.
FAILURES = 2
# Larger than the window of PostgreSQL's compression, so that repeated blocks keep their full size on disk.
BLOCK = base64.b64encode(os.urandom(12_000)).decode()


def payload(uid: str, do: str = "work", seconds: float = 0.0, size: int = 0) -> dict[str, Any]:
    """Return a payload; its uid comes first, where evidence.py looks for it."""
    made: dict[str, Any] = {"uid": uid, "do": do, "seconds": seconds}
    if size:
        made["padding"] = (BLOCK * (size // len(BLOCK) + 1))[:size]
    return made


@dataclass(frozen=True)
class ChaosHandler:
    """The handler of all workers: does what the payload asks, and records its start and end in the ledger."""

    ledger: Ledger
    # Only for the action "block".
    dsn: str = ""

    async def __call__(self, message: AsyncMessage) -> None:
        asked = message.payload
        facts = {
            "channel": message.channel,
            "attempt": message.attempt,
            "do": asked["do"],
            "message": message.uid,
        }
        self.ledger.write(Event.STARTED, [asked["uid"]], **facts)
        match asked["do"]:
            case "fail" if message.attempt <= FAILURES:
                raise RuntimeError("fails on purpose")
            case "bury":
                raise Bury("its payload asks for it")
            case "exit":
                os._exit(70)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                self._block_until_lease_ends(message, asked["seconds"])
            case _:
                await asyncio.sleep(asked["seconds"])
        self.ledger.write(Event.ENDED, [asked["uid"]], **facts)

    def _block_until_lease_ends(self, message: AsyncMessage, at_least_s: float) -> None:
        """Block the event loop until the queue has ended the lease, for at least this long.

        A completion counts, however late, as long as no other worker has ended the lease: how soon one does
        depends on the machine.
        """
        until = time.monotonic() + at_least_s
        held = "select from lonnymq.lease where message_id = %s and token = %s"
        with connect(self.dsn) as connection:
            while time.monotonic() < until or connection.execute(held, [message.id, message.token]).rowcount:
                time.sleep(0.05)
