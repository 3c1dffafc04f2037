"""Compares what is expected of the queue with what was observed."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from examples.demo import tenants
from examples.demo.fleet import Fleet
from examples.demo.monitor import Monitor
from lonnymq import Queue

# Runs a query on the queue's history that returns one value.
Ask = Callable[..., Any]


class Check(NamedTuple):
    expected: str
    observed: str
    holds: bool


def checks(queue: Queue, ask: Ask, monitor: Monitor, fleet: Fleet, abandoned: set[int]) -> Iterator[Check]:
    yield each_ends_once(queue, ask)
    yield small_tenants_are_served_early(ask)
    yield Check(
        f"capped: never more than {tenants.MAX_CONCURRENCY} leased at a time",
        f"at most {monitor.max_leased} in {monitor.samples:,} samples",
        0 < monitor.max_leased <= tenants.MAX_CONCURRENCY,
    )
    yield releases_are_spaced(ask)
    yield failed_messages_are_buried(queue)
    yield messages_of_a_killed_worker_are_redelivered(ask, abandoned)
    yield Check(
        "workers that are asked to stop finish and exit with 0",
        f"exit code {fleet.exit_code}",
        not fleet.exit_code,
    )
    problems = queue.check()
    yield Check("lonnymq check finds no problems", f"{len(problems)} problems", not problems)


def each_ends_once(queue: Queue, ask: Ask) -> Check:
    completed, distinct = ask(
        "select array[count(*), count(distinct message_id)] from lonnymq.history where outcome = 'completed'"
    )
    buried, status = len(queue.dead().list(limit=1000)), queue.status()
    left = status.waiting + status.leased
    return Check(
        f"each of {tenants.TOTAL:,} messages ends once",
        f"{distinct:,} completed, {completed - distinct} of them twice; {buried} buried; {left} left",
        completed == distinct == tenants.TOTAL - buried and buried == tenants.FAILING and left == 0,
    )


def small_tenants_are_served_early(ask: Ask) -> Check:
    """Count the messages released before the last small tenant got its last one."""
    after = ask(
        "select count(*) from lonnymq.history where leased_at <= (select max(leased_at) from lonnymq.history"
        " where channel like 'small-%%' and attempt = 1)"
    )
    return Check(
        f"small tenants: all messages among the first {tenants.FAIR} released",
        f"among the first {after}",
        0 < after <= tenants.FAIR,
    )


def releases_are_spaced(ask: Ask) -> Check:
    gap = ask(
        "select min(gap) from (select leased_at - lag(leased_at) over (order by leased_at) as gap"
        " from lonnymq.history where channel = 'throttled') g"
    )
    return Check(
        f"throttled: releases at least {tenants.RELEASE_INTERVAL_MS} ms apart",
        f"smallest gap {gap} ms",
        gap is not None and gap >= tenants.RELEASE_INTERVAL_MS,
    )


def failed_messages_are_buried(queue: Queue) -> Check:
    letters = queue.dead("failing").list(limit=1000)
    with_error = [one for one in letters if "ConnectionError: the CRM does not answer" in (one.error or "")]
    attempts = {one.attempts for one in letters}
    return Check(
        f"failing: {tenants.FAILING} dead letters with {tenants.MAX_ATTEMPTS} attempts and the traceback",
        f"{len(letters)}, {', '.join(map(str, attempts))} attempts, {len(with_error)} with the traceback",
        len(with_error) == tenants.FAILING and attempts == {tenants.MAX_ATTEMPTS},
    )


def messages_of_a_killed_worker_are_redelivered(ask: Ask, abandoned: set[int]) -> Check:
    again = ask(
        "select count(distinct e.message_id) from lonnymq.history e join lonnymq.history h using (message_id)"
        " where e.outcome = 'expired' and h.outcome in ('completed', 'buried') and e.message_id = any(%s)",
        list(abandoned),
    )
    return Check(
        "messages of a killed worker are delivered again",
        f"{again} of {len(abandoned)}",
        again == len(abandoned) > 0,
    )
