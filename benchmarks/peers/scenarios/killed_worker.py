"""One of two workers is killed: when do its messages run again, and how many ran twice?

Its messages are those that its handlers had begun and not ended. From the kill until the last of them
begins again is the time. A message ran twice if a handler came to its end twice: what was cut off in the
middle has to be begun again, what was done has not. Messages last from 100 to 300 ms, so the kill falls on
some that have just ended and some that have just begun, whatever a peer's rhythm; all peers get the same
messages, ten at a time per worker. How long a worker may be silent is set to 2 s, or to the least that a
peer takes; a broker that sees a closed socket needs no such time. What comes on top is shown for itself.
Where nobody but a person notices a dead worker there is no such feature.
"""

import time
from collections.abc import Iterable

from benchmarks.peers.deployment import LOOK_S, Crew
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.progress import Event
from benchmarks.peers.scenario import Effort, Figures, Metric, PeerHarness, Scenario

COUNT = 300
SLEEP_MS = 200
LEASE_S = 2
# Few, so that no peer holds more than the others.
BATCH = 10


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.stage(peer, lease_s=LEASE_S) as stage:
        stage.enqueue(COUNT, sleep_ms=SLEEP_MS, is_uneven=True)
        with stage.crew(2, batch=BATCH, is_traced=True, is_apart=True) as crew:
            crew.wait(COUNT // 10)
            crew.kill(somebody_busy(crew))
            killed_at = time.monotonic()
            are_all_done = crew.wait_until(lambda: len(ended(crew)) == COUNT, harness.effort.recovery_s)
            events = list(crew.meter.events)
    ends = [event.tag for event in events if event.is_end]
    again_s = last_repeat_s(events, killed_at) if are_all_done else None
    return {
        "again": again_s,
        "beyond": None if again_s is None else max(0.0, again_s - peer.silence_s),
        "lost": float(COUNT - len(set(ends))),
        "twice": float(len(ends) - len(set(ends))),
    }


def ended(crew: Crew) -> set[str]:
    return {event.tag for event in list(crew.meter.events) if event.is_end}


def somebody_busy(crew: Crew) -> int:
    """Return a process in the middle of a message."""
    while True:
        begun, done = set(), ended(crew)
        for event in crew.meter.begun():
            if event.tag not in done:
                begun.add(event.pid)
        if begun:
            return min(begun)
        time.sleep(LOOK_S)


def last_repeat_s(events: Iterable[Event], killed_at: float) -> float:
    """Return how long after the kill the last message was begun that had been begun before."""
    begun: set[str] = set()
    last_s = 0.0
    for event in sorted(events, key=lambda event: event.at_s):
        if not event.is_end:
            if event.tag in begun:
                last_s = event.at_s - killed_at
            begun.add(event.tag)
    return last_s


def lasts_s(effort: Effort) -> float:
    return effort.start_s + min(effort.recovery_s, 12.0)


SCENARIO = Scenario(
    "killed-worker",
    "One of two workers killed with SIGKILL, messages of 100 to 300 ms",
    (
        Metric("again", "until the last of its messages ran again", "s", False),
        Metric("beyond", "of that, beyond the silence that it was set to allow", "s", False, bound=None),
        Metric("lost", "not run when the time was over", "messages", False),
        Metric("twice", "ran to their end twice", "messages", False),
    ),
    measure,
    rule=(
        "By the whole time, whatever it is made of, and by what was lost or ran twice. What comes on top of "
        "the silence that a worker is allowed is information: a queue in a table cannot tell sooner whether "
        "a worker is dead, a broker sees its socket closed."
    ),
    needs=frozenset({Feature.RECOVERY}),
    lasts_s=lasts_s,
)
