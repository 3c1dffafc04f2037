"""Keeps a session that stands for this process, and watches for processes whose session is gone."""

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection

from lonnymq.calls import worker as calls
from lonnymq.calls.statement import Call
from lonnymq.connections.backoff import Backoff
from lonnymq.connections.failure import connection_lost
from lonnymq.errors import Busy
from lonnymq.model import RegisterOutcome
from lonnymq.worker.timeouts import call_within

if TYPE_CHECKING:
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.worker_log import WorkerLog

Result = TypeVar("Result")


@dataclass(frozen=True)
class Identity:
    """The name that a worker's leases bear, and the secret whose fingerprint it ends with."""

    name: str
    secret: str = field(repr=False)

    @classmethod
    def create(cls, process_name: str) -> Self:
        """Return a new identity, so that a process never bears the name of one that died before it."""
        secret = secrets.token_hex(16)
        fingerprint = hashlib.sha256(secret.encode()).hexdigest()[:16]
        return cls(f"{process_name}:{fingerprint}", secret)


class Presence:
    """If this process dies, PostgreSQL ends its session, and another worker ends its leases a second later.

    The session does nothing else, because a lost connection must be noticed and replaced within that second.
    Behind a pooler there is no such session, and leases end when they expire.
    """

    def __init__(
        self, caller: "AsyncCaller", identity: Identity, log: "WorkerLog", call_timeout_s: float
    ) -> None:
        self._caller = caller
        self.identity = identity
        self._log = log
        self._call_timeout_s = call_timeout_s
        # Whether a session stands for this process now.
        self.is_registered = False

    async def run(self) -> None:
        """Register and watch until cancelled; return if a pooler does not keep the session."""
        backoff = Backoff()
        is_possible = self._caller.settings.keeps_session
        while is_possible:
            try:
                async with self._caller.source.dedicated_connection() as connection:
                    is_possible = await self._register(connection)
                    self._log.log_recovery("registering")
                    backoff.reset()
                    while is_possible:
                        await self._watch(connection)
            except Exception as error:  # noqa: BLE001 - without a session, leases end when they expire
                self._log.log_failure("registering", error)
                await asyncio.sleep(backoff.next_s())
            finally:
                self.is_registered = False

    async def _register(self, connection: AsyncConnection[Any]) -> bool:
        """Make this session stand for the process; return whether that is possible."""
        call = calls.register(self.identity.name, self.identity.secret, connection.info.backend_pid)
        outcome = await self._execute(call, connection)
        for pause_s in Backoff(max_s=0.1).pauses(for_s=self._caller.settings.busy_for_s):
            if outcome is not RegisterOutcome.BUSY:
                break
            await asyncio.sleep(pause_s)
            outcome = await self._execute(call, connection)
        if outcome is RegisterOutcome.BUSY:
            raise Busy(f"another transaction has the row of worker {self.identity.name} locked")
        self.is_registered = outcome is RegisterOutcome.REGISTERED
        if not self.is_registered:
            self._log.info("a pooler is in between: if this process dies, its messages wait for their leases")
        return self.is_registered

    async def _watch(self, connection: AsyncConnection[Any]) -> None:
        """Watch once, then wait for the next time; raise as soon as the connection is lost."""
        watched = await self._execute(calls.watch(), connection)
        if watched.leases:
            self._log.warn_dead_workers(watched)
        try:
            async for _ in connection.notifies(timeout=watched.wait_ms / 1000):
                pass
        except psycopg.OperationalError as error:
            raise connection_lost(error, commits=False) from error

    async def _execute(self, call: Call[Result], connection: AsyncConnection[Any]) -> Result:
        executing = self._caller.execute(call, connection)
        return await call_within(self._caller.source, self._call_timeout_s, executing)
