"""One of two workers is killed in the middle: when do its messages run again, and how many ran twice?"""

import time

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario

COUNT = 600
SLEEP_MS = 50
LEASE_S = 2


def measure(bench: Bench, peer: Peer) -> Figures:
    with bench.stage(peer, lease_s=LEASE_S) as stage:
        stage.enqueue(COUNT, sleep_ms=SLEEP_MS)
        with stage.crew(2, is_traced=True, is_apart=True) as crew:
            crew.wait(COUNT // 4)
            killed_at = time.monotonic()
            crew.kill(0)
            while time.monotonic() < killed_at + bench.effort.recovery_s:
                ended = {event.tag for event in crew.meter.events if event.is_end}
                if len(ended) == COUNT:
                    break
                time.sleep(0.05)
            events = list(crew.meter.events)
    ends = [event.tag for event in events if event.is_end]
    first: dict[str, float] = {}
    again: dict[str, float] = {}
    for event in sorted(events, key=lambda event: event.at_s):
        if not event.is_end:
            (again if event.tag in first else first).setdefault(event.tag, event.at_s)
    is_complete = len(set(ends)) == COUNT
    waited_s = max((at_s - killed_at for at_s in again.values()), default=0.0)
    return {
        "again": waited_s if is_complete else None,
        "lost": float(COUNT - len(set(ends))),
        "twice": float(len(ends) - len(set(ends))),
    }


SCENARIO = Scenario(
    "killed-worker",
    "One of two workers killed with SIGKILL, 600 messages of 50 ms",
    (
        Metric("again", "until the last of its messages ran again", "s", False),
        Metric("lost", "not run when the time was over", "messages", False),
        Metric("twice", "ran to their end twice", "messages", False),
    ),
    measure,
)
