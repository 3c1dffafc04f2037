"""Ticks: whichever worker comes first enqueues them. The database's clock says when, its row says who."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from lonnymq.calls.cron import LATEST
from lonnymq.client.aio import AsyncQueue
from lonnymq.connections import outage
from lonnymq.cron import schedule
from lonnymq.errors import Busy, ConnectionLost, NotPermitted, SchemaError
from lonnymq.model import Cron, CronTickOutcome, DueCron, LeasedMessage, Ticks
from lonnymq.texts import line
from lonnymq.worker.timeouts import call_within

logger = logging.getLogger("lonnymq.cron")

# As the key of its message ends: 2026-03-29T01:00:00Z.
TICK_CHARACTERS = 20
# The longest that a cron which somebody has just set goes unseen.
POLL_S = 5.0
# Until looking again at what another worker has locked.
BUSY_S = 0.05
# Until trying again what went wrong.
ERROR_RETRY_S = 5.0
# How long a call may take until its connection is taken for dead.
CALL_TIMEOUT_S = 10.0
# What holds up all crons alike.
UNREACHABLE = (ConnectionLost, SchemaError, psycopg.OperationalError, psycopg.InterfaceError, OSError)
# Until looking again at a cron that this worker cannot read,
POSTPONED = timedelta(minutes=5)
# and at one whose own call got no answer: before its ticks count as missed.
POSTPONED_BRIEFLY = timedelta(seconds=30)
# How many crons a pass looks at; and how many if none of those can be ticked: they must not hide the others.
PAGE_SIZE, MAX_PAGE_SIZE = 100, 10_000


async def tick_forever(
    queue: AsyncQueue, crons: Sequence[Cron], call_timeout_s: float = CALL_TIMEOUT_S
) -> None:
    """Declare these crons, then enqueue what is due, these and what others have set, until cancelled."""
    names = [cron.name for cron in crons]
    undeclared = list(crons)
    trouble, is_warned = "", False
    while True:
        try:
            undeclared = await declare(queue, undeclared, call_timeout_s)
            pause_s = min(await tick(queue, names, call_timeout_s=call_timeout_s), POLL_S)
            if is_warned:
                logger.warning("crons tick again")
            trouble, is_warned = "", False
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker's messages have no part in it
            # Ticks that are missed meanwhile are caught up, as each cron says.
            reason = line(str(error) or type(error).__name__)
            if reason != trouble:
                # The client's own log tells of an outage. A worker without crons of its own only helps out.
                is_told = isinstance(error, ConnectionLost) or outage.is_known()
                is_told = is_told or (not names and isinstance(error, SchemaError | NotPermitted))
                is_warned = is_warned or not is_told
                logger.log(logging.DEBUG if is_told else logging.WARNING, "crons do not tick: %s", reason)
            trouble = reason
            pause_s = ERROR_RETRY_S
        await asyncio.sleep(pause_s)


async def declare(
    queue: AsyncQueue, crons: Sequence[Cron], call_timeout_s: float = CALL_TIMEOUT_S
) -> list[Cron]:
    """Say what the program declares; return what is to be said again, because somebody has it locked."""
    left = []
    for cron in crons:
        try:
            await call_within(queue.caller.source, call_timeout_s, queue.cron.declare(cron))
        except Busy:
            left.append(cron)
        except NotPermitted as error:
            hint = "grant the worker's role 'producer' too"
            logger.error("cron %s was not declared: %s; %s", line(cron.name), line(str(error)), hint)
        except UNREACHABLE:
            raise
        except Exception as error:  # noqa: BLE001 - one that cannot be declared must not hold up the others
            logger.error("cron %s was not declared: %s", line(cron.name), line(str(error)))
    return left


async def tick(
    queue: AsyncQueue,
    names: Sequence[str] = (),
    *,
    now: datetime | None = None,
    call_timeout_s: float = CALL_TIMEOUT_S,
) -> float:
    """Enqueue what is due once; return in how many seconds to look again.

    `now` stands in for the database's clock where time is simulated.
    """
    outcomes: dict[str, CronTickOutcome | None] = {}
    for limit in (PAGE_SIZE, MAX_PAGE_SIZE):
        due = await call_within(
            queue.caller.source, call_timeout_s, queue.cron.due(names, limit=limit, now=now)
        )
        if not due.crons:
            return POLL_S if due.wait_ms is None else due.wait_ms / 1000
        # Not cron by cron: they would be put off for workers that have it.
        schedule.require_library()
        # Workers wake at the same instant: in different orders they share the work.
        for cron in random.sample(due.crons, len(due.crons)):
            if cron.name not in outcomes:
                outcomes[cron.name] = await _tick_one(queue, cron, call_timeout_s)
        if CronTickOutcome.TICKED in outcomes.values():
            return 0.0
        if len(due.crons) < limit:
            break
    return ERROR_RETRY_S if set(outcomes.values()) == {None} else BUSY_S


def tick_of(message: LeasedMessage) -> datetime | None:
    """Return the tick that a message was enqueued for; None if no cron did."""
    key = message.key or ""
    try:
        return datetime.fromisoformat(key[-TICK_CHARACTERS:]) if key.startswith("cron:") else None
    except ValueError:
        return None


async def _tick_one(queue: AsyncQueue, cron: DueCron, call_timeout_s: float) -> CronTickOutcome | None:
    """Enqueue what is due of one cron; one that cannot be ticked must not hold up the others."""
    try:
        ticks = schedule.decide(cron)
        outcome = await call_within(queue.caller.source, call_timeout_s, queue.cron.tick(cron, ticks))
    except (ConnectionLost, SchemaError):
        raise
    except Exception as error:  # noqa: BLE001 - of an expression, a time zone or a channel of somebody else's
        # Perhaps the call was too much. If the database is away, nothing can be put off either.
        by = POSTPONED_BRIEFLY if isinstance(error, UNREACHABLE) else POSTPONED
        put_off = await _put_off(queue, cron, by, call_timeout_s)
        logger.error("cron %s does not tick: %s", line(cron.name), line(str(error)))
        return put_off
    if outcome is CronTickOutcome.TICKED and ticks.skipped_to is not None:
        logger.warning(
            "cron %s: more than %d ticks were missed, those up to %s are skipped",
            *(line(cron.name), schedule.MAX_MISSED, ticks.skipped_to.isoformat()),
        )
    if outcome is CronTickOutcome.TICKED and ticks.ticks:
        latest = ticks.ticks[-1].isoformat()
        logger.info("cron %s: enqueued %d, the latest for %s", line(cron.name), len(ticks.ticks), latest)
    return outcome


async def _put_off(
    queue: AsyncQueue, cron: DueCron, by: timedelta, call_timeout_s: float
) -> CronTickOutcome | None:
    """Have all workers leave a cron alone for a while, if that can be said; decide nothing."""
    try:
        later = min(max(cron.mark_at, cron.now_at) + by, LATEST)
        put_off = queue.cron.tick(cron, Ticks((), cron.mark_at, later))
        return await call_within(queue.caller.source, call_timeout_s, put_off)
    except UNREACHABLE:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        logger.error("cron %s cannot be put off: %s", line(cron.name), line(str(error)))
        return None
