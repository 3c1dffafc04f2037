"""What was promised beside what was seen."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from examples.demo import tenants
from examples.demo.fleet import Fleet
from examples.demo.watch import Watch
from lonnymq import Queue

# One value, by a query on the queue's own record.
Ask = Callable[..., Any]


class Finding(NamedTuple):
    promised: str
    seen: str
    holds: bool


def findings(queue: Queue, ask: Ask, watch: Watch, fleet: Fleet, abandoned: set[int]) -> Iterator[Finding]:
    yield each_ends_once(queue, ask)
    yield the_small_are_not_kept_waiting(ask)
    yield Finding(
        f"capped: never more than {tenants.MAX_CONCURRENCY} at a time",
        f"at most {watch.most_leased} in {watch.looks:,} looks",
        0 < watch.most_leased <= tenants.MAX_CONCURRENCY,
    )
    yield releases_are_spaced(ask)
    yield what_fails_is_kept(queue)
    yield what_a_killed_worker_held_comes_again(ask, abandoned)
    yield Finding(
        "workers that are asked to stop finish and say so",
        f"exit code {fleet.exit_code}",
        not fleet.exit_code,
    )
    problems = queue.check()
    yield Finding("the queue's own check finds nothing", f"{len(problems)} problems", not problems)


def each_ends_once(queue: Queue, ask: Ask) -> Finding:
    completed, distinct = ask(
        "select array[count(*), count(distinct message_id)] from lonnymq.history where outcome = 'completed'"
    )
    buried, status = len(queue.dead().list(limit=1000)), queue.status()
    left = status.waiting + status.leased
    return Finding(
        f"each of {tenants.TOTAL:,} messages ends once",
        f"{distinct:,} completed, {completed - distinct} of them twice; {buried} buried; {left} left",
        completed == distinct == tenants.TOTAL - buried and buried == tenants.FAILING and left == 0,
    )


def the_small_are_not_kept_waiting(ask: Ask) -> Finding:
    """How many messages had been handed out when the last small tenant got its last one."""
    after = ask(
        "select count(*) from lonnymq.history where leased_at <= (select max(leased_at) from lonnymq.history"
        " where channel like 'small-%%' and attempt = 1)"
    )
    return Finding(
        f"small tenants have all of theirs among the first {tenants.FAIR} released",
        f"among the first {after}",
        0 < after <= tenants.FAIR,
    )


def releases_are_spaced(ask: Ask) -> Finding:
    gap = ask(
        "select min(gap) from (select leased_at - lag(leased_at) over (order by leased_at) as gap"
        " from lonnymq.history where channel = 'throttled') g"
    )
    return Finding(
        f"throttled: releases at least {tenants.RELEASE_INTERVAL_MS} ms apart",
        f"smallest gap {gap} ms",
        gap is not None and gap >= tenants.RELEASE_INTERVAL_MS,
    )


def what_fails_is_kept(queue: Queue) -> Finding:
    letters = queue.dead("failing").list(limit=1000)
    told = [one for one in letters if "ConnectionError: the CRM does not answer" in (one.error or "")]
    tried = {one.attempts for one in letters}
    return Finding(
        f"failing: {tenants.FAILING} dead letters, {tenants.MAX_ATTEMPTS} attempts each, and the traceback",
        f"{len(letters)}, {', '.join(map(str, tried))} attempts, {len(told)} with it",
        len(told) == tenants.FAILING and tried == {tenants.MAX_ATTEMPTS},
    )


def what_a_killed_worker_held_comes_again(ask: Ask, abandoned: set[int]) -> Finding:
    again = ask(
        "select count(distinct e.message_id) from lonnymq.history e join lonnymq.history h using (message_id)"
        " where e.outcome = 'expired' and h.outcome in ('completed', 'buried') and e.message_id = any(%s)",
        list(abandoned),
    )
    return Finding(
        "what a killed worker held comes again",
        f"{again} of {len(abandoned)}",
        again == len(abandoned) > 0,
    )
