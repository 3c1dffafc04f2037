"""The primary is killed and its standby promoted; the members' DSN names both hosts.

Synchronous: every acknowledged message survives. Asynchronous: replication stalls for a moment before the
kill, so that there is a tail to lose; no message acknowledged before that may be lost.
"""

import time
from functools import partial

from tests.chaos.account import Account
from tests.chaos.aftermath import examine, require_unique_uids
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario
from tests.chaos.servers import start_pair

STALL_S = 1.0
# The standby may lag this far behind before replication stalls.
LAG_S = 1.0
NOTE_S = 0.2


def execute(run: Run, *, is_synchronous: bool) -> Account:
    pair = start_pair(run, is_synchronous=is_synchronous)
    harness = Harness(run, pair.dsn)
    harness.start_default_members()
    harness.pause(run.seconds / 2)
    tail_start = time.monotonic() - LAG_S
    if not is_synchronous:
        pair.replication.stall()
        harness.pause(STALL_S)
    pair.primary.kill()
    # A producer may note the last answer of the primary a little later; no promotion is that fast.
    tail = (tail_start, time.monotonic() + NOTE_S)
    run.say("the primary was killed")
    promoted_at = pair.promote()
    examine(run, pair.standby.dsn)
    harness.require_recovery(promoted_at, "the promotion")
    harness.pause(run.seconds / 2)
    account = harness.finish(harness.rules if is_synchronous else harness.rules_with(tail=tail))
    if not is_synchronous and not account.lost_tail:
        account.problems.append(
            "nothing was lost with the tail, so this run did not test an asynchronous failover"
        )
    require_unique_uids(harness, account)
    return account


SCENARIOS = [
    Scenario(
        "failover-synchronous",
        "promote a synchronous standby: nothing acknowledged is lost",
        25,
        partial(execute, is_synchronous=True),
    ),
    Scenario(
        "failover-asynchronous",
        "promote an asynchronous standby: only the unreplicated tail is lost",
        25,
        partial(execute, is_synchronous=False),
    ),
]
