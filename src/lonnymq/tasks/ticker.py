"""Enqueues due crons. Any worker may do it; the database decides what is due and which worker was first."""

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
from lonnymq.texts import one_line
from lonnymq.worker.timeouts import call_within

LOGGER = logging.getLogger("lonnymq.cron")

# The end of the key of a tick's message: 2026-03-29T01:00:00Z.
TICK_CHARACTERS = 20
# How long a cron that was just set may go unnoticed.
POLL_S = 5.0
# How long to wait while another worker has a cron locked.
BUSY_S = 0.05
# How long to wait after an error.
ERROR_RETRY_S = 5.0
# How long a call may take before its connection is treated as dead.
CALL_TIMEOUT_S = 10.0
# Errors that affect all crons.
UNREACHABLE = (ConnectionLost, SchemaError, psycopg.OperationalError, psycopg.InterfaceError, OSError)
# How long to postpone a cron that cannot be ticked.
POSTPONED = timedelta(minutes=5)
# The same if its call got no answer: less than the minute after which its ticks count as missed.
POSTPONED_BRIEFLY = timedelta(seconds=30)
# How many crons to ask for, and how many if none of those can be ticked and they could hide the others.
PAGE_SIZE, MAX_PAGE_SIZE = 100, 10_000


async def tick_forever(
    queue: AsyncQueue, crons: Sequence[Cron], call_timeout_s: float = CALL_TIMEOUT_S
) -> None:
    """Declare these crons, then tick them and those set outside of programs, until cancelled."""
    names = [cron.name for cron in crons]
    undeclared = list(crons)
    last_error, has_warned = "", False
    while True:
        try:
            undeclared = await declare(queue, undeclared, call_timeout_s)
            pause_s = min(await tick(queue, names, call_timeout_s=call_timeout_s), POLL_S)
            if has_warned:
                LOGGER.warning("crons tick again")
            last_error, has_warned = "", False
        except Exception as error:  # noqa: BLE001 - the worker processes messages whatever happens to crons
            # Each cron's `catch_up` says what happens to ticks that are missed meanwhile.
            reason = one_line(str(error) or type(error).__name__)
            if reason != last_error:
                # The client logs outages itself. A worker without crons of its own ticks only as a help.
                is_minor = isinstance(error, ConnectionLost) or outage.is_known()
                is_minor = is_minor or (not names and isinstance(error, SchemaError | NotPermitted))
                has_warned = has_warned or not is_minor
                LOGGER.log(logging.DEBUG if is_minor else logging.WARNING, "crons do not tick: %s", reason)
            last_error = reason
            pause_s = ERROR_RETRY_S
        await asyncio.sleep(pause_s)


async def declare(
    queue: AsyncQueue, crons: Sequence[Cron], call_timeout_s: float = CALL_TIMEOUT_S
) -> list[Cron]:
    """Declare the crons of a program; return those to declare again later, because they are locked."""
    busy = []
    for cron in crons:
        try:
            await call_within(queue.caller.source, call_timeout_s, queue.cron.declare(cron))
        except Busy:
            busy.append(cron)
        except NotPermitted as error:
            hint = "grant the worker's role 'producer' too"
            LOGGER.error("cron %s was not declared: %s; %s", one_line(cron.name), one_line(str(error)), hint)
        except UNREACHABLE:
            raise
        except Exception as error:  # noqa: BLE001 - one cron must not hold up the others
            LOGGER.error("cron %s was not declared: %s", one_line(cron.name), one_line(str(error)))
    return busy


async def tick(
    queue: AsyncQueue,
    names: Sequence[str] = (),
    *,
    now: datetime | None = None,
    call_timeout_s: float = CALL_TIMEOUT_S,
) -> float:
    """Tick all due crons once; return the seconds until the next call.

    `now` replaces the database's clock where time is simulated.
    """
    outcomes: dict[str, CronTickOutcome | None] = {}
    for limit in (PAGE_SIZE, MAX_PAGE_SIZE):
        due = await call_within(
            queue.caller.source, call_timeout_s, queue.cron.due(names, limit=limit, now=now)
        )
        if not due.crons:
            return POLL_S if due.wait_ms is None else due.wait_ms / 1000
        # Not per cron: without the library, crons would be postponed for workers that have it.
        schedule.require_library()
        # Workers wake at the same instant. In random order they share the crons.
        for cron in random.sample(due.crons, len(due.crons)):
            if cron.name not in outcomes:
                outcomes[cron.name] = await _tick_one(queue, cron, call_timeout_s)
        if CronTickOutcome.TICKED in outcomes.values():
            return 0.0
        if len(due.crons) < limit:
            break
    return ERROR_RETRY_S if set(outcomes.values()) == {None} else BUSY_S


def tick_of(message: LeasedMessage) -> datetime | None:
    """Return the tick that a message was enqueued for; None if it was not enqueued by a cron."""
    key = message.key or ""
    try:
        return datetime.fromisoformat(key[-TICK_CHARACTERS:]) if key.startswith("cron:") else None
    except ValueError:
        return None


async def _tick_one(queue: AsyncQueue, cron: DueCron, call_timeout_s: float) -> CronTickOutcome | None:
    """Enqueue the due ticks of one cron, or postpone it, so that it does not hold up the others."""
    try:
        ticks = schedule.decide(cron)
        outcome = await call_within(queue.caller.source, call_timeout_s, queue.cron.tick(cron, ticks))
    except (ConnectionLost, SchemaError):
        raise
    except Exception as error:  # noqa: BLE001 - its expression, time zone or channel may be wrong
        # If the call itself was too much, it is postponed. If the database is away, postponing fails too.
        by = POSTPONED_BRIEFLY if isinstance(error, UNREACHABLE) else POSTPONED
        postponed = await _postpone(queue, cron, by, call_timeout_s)
        LOGGER.error("cron %s does not tick: %s", one_line(cron.name), one_line(str(error)))
        return postponed
    if outcome is CronTickOutcome.TICKED and ticks.skipped_to is not None:
        LOGGER.warning(
            "cron %s: more than %d ticks were missed, those up to %s are skipped",
            *(one_line(cron.name), schedule.MAX_MISSED, ticks.skipped_to.isoformat()),
        )
    if outcome is CronTickOutcome.TICKED and ticks.ticks:
        latest = ticks.ticks[-1].isoformat()
        LOGGER.info("cron %s: enqueued %d, the latest for %s", one_line(cron.name), len(ticks.ticks), latest)
    return outcome


async def _postpone(
    queue: AsyncQueue, cron: DueCron, by: timedelta, call_timeout_s: float
) -> CronTickOutcome | None:
    """Let no worker look at a cron for a while, if possible; its due ticks stay undecided."""
    try:
        later = min(max(cron.mark_at, cron.now_at) + by, LATEST)
        postponing = queue.cron.tick(cron, Ticks((), cron.mark_at, later))
        return await call_within(queue.caller.source, call_timeout_s, postponing)
    except UNREACHABLE:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        LOGGER.error("cron %s cannot be postponed: %s", one_line(cron.name), one_line(str(error)))
        return None
