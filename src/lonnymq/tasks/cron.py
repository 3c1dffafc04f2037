"""Ticks: whichever worker comes first enqueues them. The database's clock says when, its row says who."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from lonnymq.calls import schedule
from lonnymq.client.aio import AsyncQueue
from lonnymq.errors import ConnectionLost, LonnyError, NotPermitted
from lonnymq.model import Cron, CronTickOutcome, DueCron, LeasedMessage, Ticks

logger = logging.getLogger("lonnymq.cron")

# As the key of its message ends: 2026-03-29T01:00:00Z.
TICK_CHARACTERS = 20
# The longest that a cron which somebody has just set goes unseen.
LOOK_S = 5.0
# Until looking again at what another worker has locked.
BUSY_S = 0.05
# Until trying again what went wrong.
TROUBLE_S = 5.0
# Until looking again at a cron that this worker cannot read.
POSTPONED = timedelta(minutes=5)


async def tick_forever(queue: AsyncQueue, crons: Sequence[Cron]) -> None:
    """Declare these crons, then enqueue what is due, these and what others have set, until cancelled."""
    names = [cron.name for cron in crons]
    undeclared = list(crons)
    while True:
        try:
            undeclared = await declare(queue, undeclared)
            pause_s = min(await tick(queue, names), LOOK_S)
        except (LonnyError, psycopg.Error) as error:
            # The worker itself says what has become of its database; ticks are caught up as they say.
            logger.warning("crons are not ticking: %s", error)
            pause_s = TROUBLE_S
        await asyncio.sleep(pause_s)


async def declare(queue: AsyncQueue, crons: Sequence[Cron]) -> list[Cron]:
    """Say what the program declares; return what is to be said again, because somebody has it locked."""
    left = []
    for cron in crons:
        try:
            await queue.cron.declare(cron)
        except NotPermitted as error:
            logger.error(
                "cron %s is not declared, the worker's role must be a producer too: %s", cron.name, error
            )
        except ConnectionLost:
            raise
        except LonnyError as error:
            logger.warning("cron %s is not declared yet: %s", cron.name, error)
            left.append(cron)
    return left


async def tick(queue: AsyncQueue, names: Sequence[str] = (), *, now: datetime | None = None) -> float:
    """Enqueue what is due once; return in how many seconds to look again.

    `now` stands in for the database's clock where time is simulated.
    """
    due = await queue.cron.due(names, now=now)
    if not due.crons:
        return LOOK_S if due.wait_ms is None else due.wait_ms / 1000
    # Workers wake at the same instant: in different orders they share the work.
    outcomes = [await _tick_one(queue, cron) for cron in random.sample(due.crons, len(due.crons))]
    return 0.0 if CronTickOutcome.TICKED in outcomes else BUSY_S


def tick_of(message: LeasedMessage) -> datetime | None:
    """Return the tick that a message was enqueued for; None if no cron did."""
    key = message.key or ""
    return datetime.fromisoformat(key[-TICK_CHARACTERS:]) if key.startswith("cron:") else None


async def _tick_one(queue: AsyncQueue, cron: DueCron) -> CronTickOutcome:
    try:
        ticks = schedule.decide(cron)
        outcome = await queue.cron.tick(cron, ticks)
    except ConnectionLost:
        raise
    except LonnyError as error:
        # One that cannot be read, or whose content has become too large, must not hold up the others.
        logger.error("cron %s does not tick: %s", cron.name, error)
        return await queue.cron.tick(cron, Ticks((), cron.mark_at, cron.now_at + POSTPONED))
    if outcome is CronTickOutcome.TICKED and ticks.ticks:
        logger.info(
            "cron %s: %d ticks, the latest of %s", cron.name, len(ticks.ticks), ticks.ticks[-1].isoformat()
        )
    return outcome
