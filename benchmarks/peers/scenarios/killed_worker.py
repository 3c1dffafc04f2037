"""One of two workers is killed in the middle: when do its messages run again, and how many ran twice?"""

import time
from collections.abc import Iterable

from benchmarks.peers.meter import Event
from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario
from benchmarks.peers.stage import Crew

COUNT = 300
SLEEP_MS = 200
LEASE_S = 2
# Few, so that no peer holds more than the others.
BATCH = 10
LOOK_S = 0.02


def measure(bench: Bench, peer: Peer) -> Figures:
    with bench.stage(peer, lease_s=LEASE_S) as stage:
        stage.enqueue(COUNT, sleep_ms=SLEEP_MS)
        with stage.crew(2, batch=BATCH, is_traced=True, is_apart=True) as crew:
            crew.wait(COUNT // 10)
            # Not while the end of one is being told and the next begins, which is where many peers run twice.
            time.sleep(SLEEP_MS / 2000)
            crew.kill(somebody_busy(crew))
            killed_at = time.monotonic()
            while time.monotonic() < killed_at + bench.effort.recovery_s and len(ended(crew)) < COUNT:
                time.sleep(LOOK_S)
            events = list(crew.meter.events)
            are_all_done = len(ended(crew)) == COUNT
    ends = [event.tag for event in events if event.is_end]
    return {
        "again": last_repeat_s(events, killed_at) if are_all_done else None,
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


SCENARIO = Scenario(
    "killed-worker",
    "One of two workers killed with SIGKILL in the middle of messages of 200 ms",
    (
        Metric("again", "until the last of its messages ran again", "s", False),
        Metric("lost", "not run when the time was over", "messages", False),
        Metric("twice", "ran to their end twice", "messages", False),
    ),
    measure,
)
