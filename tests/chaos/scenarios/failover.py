"""The primary is killed and its standby promoted; members find it by a DSN that names both.

Synchronous: every acknowledged message survives. Asynchronous: replication is held up for a moment before the
kill, so that there is a tail to lose; nothing that was acknowledged before it may be lost.
"""

import time
from functools import partial

from tests.chaos.account import Account
from tests.chaos.run import Run, Scenario
from tests.chaos.servers import start_pair
from tests.chaos.stage import Stage

HELD_UP_S = 1.0
# The standby may be this far behind before replication is held up.
LAG_S = 1.0


def play(run: Run, *, is_synchronous: bool) -> Account:
    pair = start_pair(run, is_synchronous=is_synchronous)
    stage = Stage(run, pair.dsn)
    stage.usual_cast()
    stage.pause(run.seconds / 2)
    tail_began = time.monotonic() - LAG_S
    if not is_synchronous:
        pair.replication.stall()
        stage.pause(HELD_UP_S)
    pair.primary.kill()
    tail = (tail_began, time.monotonic())
    run.say("the primary is dead")
    promoted_at = pair.promote()
    stage.require_recovery(promoted_at, "the promotion")
    stage.pause(run.seconds / 2)
    account = stage.settle(stage.rules if is_synchronous else stage.allow(tail=tail))
    if not is_synchronous and not account.lost_tail:
        account.problems.append(
            "nothing was lost with the tail: this run did not test an asynchronous failover"
        )
    return account


SCENARIOS = [
    Scenario(
        "failover-synchronous",
        "promote a synchronous standby: nothing acknowledged is lost",
        25,
        partial(play, is_synchronous=True),
    ),
    Scenario(
        "failover-asynchronous",
        "promote an asynchronous standby: only the unreplicated tail is lost",
        25,
        partial(play, is_synchronous=False),
    ),
]
