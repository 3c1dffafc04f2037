"""Ticks: whichever worker comes first enqueues them. The database's clock says when, its row says who."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from lonnymq.calls import schedule
from lonnymq.client.aio import AsyncQueue
from lonnymq.errors import Busy, ConnectionLost, InvalidArgument, LonnyError, NotPermitted, SchemaError
from lonnymq.model import Cron, CronTickOutcome, DueCron, LeasedMessage, Ticks
from lonnymq.worker.patience import answered

logger = logging.getLogger("lonnymq.cron")

# As the key of its message ends: 2026-03-29T01:00:00Z.
TICK_CHARACTERS = 20
# The longest that a cron which somebody has just set goes unseen.
LOOK_S = 5.0
# Until looking again at what another worker has locked.
BUSY_S = 0.05
# Until trying again what went wrong.
TROUBLE_S = 5.0
# How long a call may take until its connection is taken for dead.
PATIENCE_S = 10.0
# Until looking again at a cron that this worker cannot read.
POSTPONED = timedelta(minutes=5)


async def tick_forever(queue: AsyncQueue, crons: Sequence[Cron], patience_s: float = PATIENCE_S) -> None:
    """Declare these crons, then enqueue what is due, these and what others have set, until cancelled."""
    names = [cron.name for cron in crons]
    undeclared = list(crons)
    trouble = ""
    while True:
        try:
            undeclared = await declare(queue, undeclared, patience_s)
            pause_s = min(await tick(queue, names, patience_s=patience_s), LOOK_S)
            trouble = ""
        except (LonnyError, psycopg.Error, OSError) as error:
            # Ticks that are missed meanwhile are caught up, as each cron says.
            if str(error) != trouble:
                # A worker without crons of its own only helps out, and its other parts say this too.
                is_told = not names and isinstance(error, ConnectionLost | SchemaError | NotPermitted)
                logger.log(logging.DEBUG if is_told else logging.WARNING, "crons do not tick: %s", error)
            trouble = str(error)
            pause_s = TROUBLE_S
        await asyncio.sleep(pause_s)


async def declare(queue: AsyncQueue, crons: Sequence[Cron], patience_s: float = PATIENCE_S) -> list[Cron]:
    """Say what the program declares; return what is to be said again, because somebody has it locked."""
    left = []
    for cron in crons:
        try:
            await answered(queue.caller.source, patience_s, queue.cron.declare(cron))
        except Busy:
            left.append(cron)
        except NotPermitted as error:
            hint = "the worker's role must be granted 'producer' too"
            logger.error("cron %s is not declared, %s: %s", cron.name, hint, error)
        except InvalidArgument as error:
            logger.error("cron %s is not declared: %s", cron.name, error)
    return left


async def tick(
    queue: AsyncQueue,
    names: Sequence[str] = (),
    *,
    now: datetime | None = None,
    patience_s: float = PATIENCE_S,
) -> float:
    """Enqueue what is due once; return in how many seconds to look again.

    `now` stands in for the database's clock where time is simulated.
    """
    due = await answered(queue.caller.source, patience_s, queue.cron.due(names, now=now))
    if not due.crons:
        return LOOK_S if due.wait_ms is None else due.wait_ms / 1000
    # Not cron by cron: they would be put off for workers that have it.
    schedule.require_library()
    # Workers wake at the same instant: in different orders they share the work.
    shuffled = random.sample(due.crons, len(due.crons))
    outcomes = [await _tick_one(queue, cron, patience_s) for cron in shuffled]
    return 0.0 if CronTickOutcome.TICKED in outcomes else BUSY_S


def tick_of(message: LeasedMessage) -> datetime | None:
    """Return the tick that a message was enqueued for; None if no cron did."""
    key = message.key or ""
    try:
        return datetime.fromisoformat(key[-TICK_CHARACTERS:]) if key.startswith("cron:") else None
    except ValueError:
        return None


async def _tick_one(queue: AsyncQueue, cron: DueCron, patience_s: float) -> CronTickOutcome:
    source = queue.caller.source
    try:
        ticks = schedule.decide(cron)
        outcome = await answered(source, patience_s, queue.cron.tick(cron, ticks))
    except (ConnectionLost, psycopg.OperationalError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - one that cannot be ticked must not hold up the others
        logger.error("cron %s does not tick: %s", cron.name, error)
        later = max(cron.mark_at, cron.now_at) + POSTPONED
        put_off = queue.cron.tick(cron, Ticks((), cron.mark_at, later))
        return await answered(source, patience_s, put_off)
    if outcome is CronTickOutcome.TICKED and ticks.ticks:
        latest = ticks.ticks[-1].isoformat()
        logger.info("cron %s: enqueued %d, the latest for %s", cron.name, len(ticks.ticks), latest)
    return outcome
