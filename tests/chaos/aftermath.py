"""What a scenario looks at after another server has taken over."""

from collections import Counter, defaultdict

from lonnymq import Queue
from lonnymq.doctor.failover_findings import after_failover
from lonnymq.doctor.finding import Level
from tests.chaos.account import Account
from tests.chaos.harness import Harness, entries_of
from tests.chaos.ledger import Event
from tests.chaos.run import Run


def examine(run: Run, dsn: str) -> set[str]:
    """Print what `lonnymq doctor --after-failover` says, and return the kinds of facts behind it."""
    with Queue(dsn) as queue:
        facts = queue.examine(after_failover=True)
    for one in after_failover(facts):
        if one.level in (Level.WARNING, Level.PROBLEM):
            run.say(f"doctor: {one.level}: {one.detail}")
    return {one.kind for one in facts.failover or ()}


def count_repetitions(harness: Harness) -> int:
    """Return how many messages were processed to the end more than once, and print it."""
    entries = entries_of(harness.workers)
    ended = Counter(one.uid for one in entries if one.event is Event.ENDED and one.do == "work")
    repeated = sum(times > 1 for times in ended.values())
    harness.run.say(f"{repeated} messages were processed again")
    return repeated


def require_unique_uids(harness: Harness, account: Account, *, has_reissued_ids: bool | None = None) -> None:
    """Report a problem if two messages had the same `uid`, or if ids were or were not issued twice."""
    by_uid, by_id = defaultdict(set), defaultdict(set)
    for entry in entries_of(harness.workers):
        if entry.event is Event.STARTED:
            by_uid[entry.message].add(entry.uid)
            by_id[entry.message.partition("-")[2]].add(entry.uid)
    shared = [uid for uid, messages in by_uid.items() if len(messages) > 1]
    reissued = sum(len(messages) > 1 for messages in by_id.values())
    harness.run.say(f"{reissued} of {len(by_id)} ids were issued to two messages, {len(shared)} of the uids")
    if shared:
        account.problems.append(f"two messages have the uid {shared[0]}")
    if has_reissued_ids is not None and bool(reissued) is not has_reissued_ids:
        account.problems.append(f"{reissued} ids were issued twice")
