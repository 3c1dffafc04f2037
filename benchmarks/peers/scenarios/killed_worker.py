"""One of two workers is killed: when do its messages run again, and how many run twice?

Its messages are those that its handlers had begun but not ended. The time is measured from the kill until the
last of them begins again. A message ran twice if two handlers ran to their end: interrupted messages must be
repeated, completed ones must not. Messages take from 100 to 300 ms, so that the kill hits some that have just
ended and some that have just begun. All peers get the same messages, ten at a time per worker. A worker
counts as dead after 2 s of silence, or after the shortest time that a peer allows; a broker that notices a
closed socket needs no such time, and LonnyMQ waits for a second for the worker to connect again. The time
beyond that is shown separately. If only a person can recover the messages of a dead worker, the peer does not
have this feature.
"""

import time
from collections.abc import Iterable

from benchmarks.peers.deployment import POLL_S, WorkerProcesses
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.progress import Event
from benchmarks.peers.scenario import Effort, Figures, Metric, PeerHarness, Scenario

COUNT = 300
SLEEP_MS = 200
LEASE_S = 2
# Small, so that no peer holds more messages than the others.
BATCH = 10


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.deploy(peer, lease_s=LEASE_S) as deployment:
        deployment.enqueue(COUNT, sleep_ms=SLEEP_MS, is_uneven=True)
        with deployment.workers(2, batch=BATCH, is_traced=True, can_be_killed=True) as workers:
            workers.wait(COUNT // 10)
            workers.kill(pick_busy_process(workers))
            killed_at = time.monotonic()
            are_all_done = workers.wait_until(
                lambda: len(tags_of_ended(workers)) == COUNT, harness.effort.recovery_s
            )
            events = list(workers.progress.events)
    ends = [event.tag for event in events if event.is_end]
    again_s = last_repetition_s(events, killed_at) if are_all_done else None
    return {
        "again": again_s,
        "beyond": None if again_s is None else max(0.0, again_s - peer.silence_s),
        "lost": float(COUNT - len(set(ends))),
        "twice": float(len(ends) - len(set(ends))),
    }


def tags_of_ended(workers: WorkerProcesses) -> set[str]:
    return {event.tag for event in list(workers.progress.events) if event.is_end}


def pick_busy_process(workers: WorkerProcesses) -> int:
    """Return the id of a process that is running a handler."""
    while True:
        begun, done = set(), tags_of_ended(workers)
        for event in workers.progress.beginnings():
            if event.tag not in done:
                begun.add(event.pid)
        if begun:
            return min(begun)
        time.sleep(POLL_S)


def last_repetition_s(events: Iterable[Event], killed_at: float) -> float:
    """Return how long after the kill the last repetition of a message began."""
    begun: set[str] = set()
    last_s = 0.0
    for event in sorted(events, key=lambda event: event.at_s):
        if not event.is_end:
            if event.tag in begun:
                last_s = event.at_s - killed_at
            begun.add(event.tag)
    return last_s


def duration_s(effort: Effort) -> float:
    return effort.start_s + min(effort.recovery_s, 12.0)


SCENARIO = Scenario(
    "killed-worker",
    "One of two workers killed with SIGKILL, messages of 100 to 300 ms",
    (
        Metric("again", "time until its last message ran again", "s", False),
        Metric("beyond", "of that, beyond the configured silence", "s", False, bound=None),
        Metric("lost", "not run in time", "messages", False),
        Metric("twice", "run to their end twice", "messages", False),
    ),
    measure,
    rule=(
        "By the whole time, and by the messages that were lost or ran twice. The time beyond the silence "
        "after which a worker counts as dead is shown but not judged: some queues know only from silence "
        "that a worker is dead, whereas others notice that its connection was closed."
    ),
    needs=frozenset({Feature.RECOVERY}),
    duration_s=duration_s,
)
