"""Releases the callbacks of groups whose members have all ended."""

import asyncio
import contextlib
import time
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from lonnymq.calls import group as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.model import GroupOutcome
from lonnymq.worker.timeouts import call_within

if TYPE_CHECKING:
    from lonnymq.calls.statement import Call
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.worker_log import WorkerLog

Result = TypeVar("Result")

# After these answers, a message has or may have ended.
ENDED = frozenset({"completed", "buried", "cancelled", "lease_lost"})
# How long to wait before asking again about a locked group.
BUSY_RETRY_S = 0.05
# How often to do that.
MAX_BUSY = 20
# The most groups in a call.
MAX_CHECKED = 1000


class GroupKeeper:
    """Checks a group each time this process has ended one of its members, after that has committed.

    If the process dies before, or a message ends without a worker, a sweep of any worker finds the group.
    """

    def __init__(self, caller: "AsyncCaller", log: "WorkerLog", call_timeout_s: float) -> None:
        self._caller = caller
        self._log = log
        self._call_timeout_s = call_timeout_s
        # The callbacks of groups to check, and how often each was locked.
        self._unchecked: dict[int, int] = {}
        self._checking = asyncio.Lock()
        self._has_unchecked = asyncio.Event()

    def message_ended(self, message: object, outcome: str) -> None:
        """Note that the queue has answered an acknowledgement."""
        if (group := calls.group_of(message)) is not None and outcome in ENDED:
            self._unchecked[group] = 0
            self._has_unchecked.set()

    async def run(self) -> None:
        """Check and sweep until cancelled."""
        backoff = Backoff()
        sweep_at = time.monotonic()
        while True:
            try:
                if self._unchecked:
                    await self._check_some()
                if time.monotonic() >= sweep_at:
                    wait_ms = await self._call(calls.sweep())
                    sweep_at = time.monotonic() + wait_ms / 1000
                self._log.log_recovery("checking groups")
                backoff.reset()
            except Exception as error:  # noqa: BLE001 - the worker processes messages without it
                self._log.log_failure("checking groups", error)
                sweep_at = time.monotonic() + backoff.next_s()
                await asyncio.sleep(sweep_at - time.monotonic())
                continue
            if not self._unchecked:
                self._has_unchecked.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, sweep_at - time.monotonic())):
                        await self._has_unchecked.wait()

    async def check(self) -> None:
        """Check the groups of all messages that have ended, and wait for a check that `run` has begun."""
        while self._unchecked or self._checking.locked():
            await self._check_some()

    async def _check_some(self) -> None:
        async with self._checking:
            groups = dict(islice(self._unchecked.items(), MAX_CHECKED))
            if not groups:
                return
            self._unchecked = {group: busy for group, busy in self._unchecked.items() if group not in groups}
            try:
                outcomes = await self._call(calls.check(list(groups)))
            except BaseException:
                self._unchecked = {**groups, **self._unchecked}
                raise
            # Another check may have begun before the message had ended. A group that stays locked is swept
            # later. A member that has ended meanwhile is a reason to start over.
            again = {
                group: busy + 1
                for group, busy in groups.items()
                if outcomes[group] is GroupOutcome.BUSY and busy < MAX_BUSY
            }
            if again:
                self._unchecked = {**again, **self._unchecked}
                await asyncio.sleep(BUSY_RETRY_S)

    async def _call(self, call: "Call[Result]") -> Result:
        return await call_within(self._caller.source, self._call_timeout_s, self._caller.perform(call))
