"""Tenants share a queue: a noisy, ten small, a capped, a throttled and a failing one; and a worker dies.

Starts its own PostgreSQL, watches the run from a separate session, and compares what was promised with what
was seen. Ends with 1 if they differ.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

import lonnymq
from lonnymq import ClientSettings, CompleteOutcome, Message, NewMessage, Queue

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event

WORKERS = 4
BATCH = 20
LEASE_MS = 3000
WORK_S = 0.001

NOISY = 10_000
SMALL_TENANTS = 10
SMALL = 10
CAPPED, MAX_CONCURRENCY = 100, 2
THROTTLED, RELEASE_INTERVAL_MS = 40, 50
BROKEN, MAX_ATTEMPTS = 20, 2
TOTAL = NOISY + SMALL_TENANTS * SMALL + CAPPED + THROTTLED + BROKEN

# In each round every channel has its turn, and each worker may at that moment hold one whole reply.
FAIR = SMALL * WORKERS * BATCH
GIVE_UP_S = 55.0


def main() -> int:
    with lonnymq.embedded() as server, Queue(server.dsn) as queue:
        print(f"PostgreSQL {server.version} has started; {WORKERS} workers, {TOTAL:,} messages")
        prepare(queue, server.dsn)
        fill(queue)
        with Fleet(server.dsn) as fleet, Watch(server.dsn) as watch:
            abandoned = run(fleet, watch)
        return report(queue, watch, abandoned)


# Before.


def prepare(queue: Queue, dsn: str) -> None:
    """Install, set the policies, and have a table in which workers write what they did."""
    queue.install()
    queue.set(history="metadata")
    queue.channel("capped").set(max_concurrency=MAX_CONCURRENCY)
    queue.channel("throttled").set(release_interval_ms=RELEASE_INTERVAL_MS)
    queue.channel("broken").set(max_attempts=MAX_ATTEMPTS)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "create table done (message_id bigint, channel text, attempt integer, leased_at timestamptz)"
        )


def fill(queue: Queue) -> None:
    """The noisy tenant comes first."""
    queue.copy_in(NewMessage(channel="noisy", payload=n) for n in range(NOISY))
    sizes = {f"small-{n}": SMALL for n in range(SMALL_TENANTS)}
    sizes |= {"capped": CAPPED, "throttled": THROTTLED, "broken": BROKEN}
    queue.enqueue_many(
        NewMessage(channel=name, payload=n) for name, size in sizes.items() for n in range(size)
    )


# A worker, in a process of its own.


def work(dsn: str, name: str, stopping: "Event") -> None:
    """Lease a batch, work it, end it; until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    dsn = make_conninfo(dsn, application_name=name)
    settings = ClientSettings(pool_max_size=2)
    with Queue(dsn, settings=settings) as queue, psycopg.connect(dsn, autocommit=True) as connection:
        while not stopping.is_set():
            batch = queue.dequeue(limit=BATCH, lease_ms=LEASE_MS, worker=name, wait=0.25)
            failed = [message for message in batch if message.channel == "broken"]
            worked = [message for message in batch if message.channel != "broken"]
            for _ in worked:
                time.sleep(WORK_S)
            queue.defer(failed, delay=0.1, error="this tenant's messages always fail")
            complete(queue, connection, worked)


def complete(queue: Queue, connection: psycopg.Connection[Any], messages: list[Message]) -> None:
    """Complete and write down what was done, in one transaction: both or neither."""
    with connection.transaction():
        outcomes = queue.complete(messages, connection=connection)
        answers = zip(messages, outcomes, strict=True)
        done = [message for message, outcome in answers if outcome is CompleteOutcome.COMPLETED]
        connection.cursor().executemany(
            "insert into done values (%s, %s, %s, %s)",
            [(message.id, message.channel, message.attempt, message.leased_at) for message in done],
        )


class Fleet:
    """The worker processes."""

    def __init__(self, dsn: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.stopping = context.Event()
        self.processes: dict[str, BaseProcess] = {
            name: context.Process(target=work, args=(dsn, name, self.stopping), name=name, daemon=True)
            for name in (f"worker-{n}" for n in range(1, WORKERS + 1))
        }

    def __enter__(self) -> "Fleet":
        for process in self.processes.values():
            process.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stopping.set()
        for process in self.processes.values():
            process.join(timeout=5)
            process.kill()

    @property
    def alive(self) -> int:
        return sum(process.is_alive() for process in self.processes.values())


# Watching, from sessions of our own.


@dataclass
class Watch:
    """Counts leases of the capped channel all the time, and tells how far everybody is."""

    dsn: str
    samples: int = 0
    most_leased: int = 0
    began: float = field(default_factory=time.monotonic)

    def __enter__(self) -> "Watch":
        self.connection = psycopg.connect(self.dsn, autocommit=True)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.is_over.set()
        self.thread.join()
        self.connection.close()
        self.elapsed = time.monotonic() - self.began

    def sample(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while not self.is_over.wait(0.005):
                leased = connection.execute(
                    "select count(*) from lonnymq.lease_status where channel = 'capped'"
                ).fetchone()
                assert leased is not None
                self.samples += 1
                self.most_leased = max(self.most_leased, leased[0])

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, values).fetchall()

    def progress(self) -> dict[str, int]:
        counts = self.ask("select split_part(channel, '-', 1), count(*) from done group by 1")
        dead = self.ask("select count(*) from lonnymq.dead_letter")
        return {
            **dict.fromkeys(("noisy", "small", "capped", "throttled"), 0),
            **dict(counts),
            "dead": dead[0][0],
        }


def run(fleet: Fleet, watch: Watch) -> set[int]:
    """Wait until everything has ended; on the way, kill a worker. Return the messages it left behind."""
    abandoned: set[int] = set()
    screen = Screen()
    while time.monotonic() - watch.began < GIVE_UP_S:
        progress = watch.progress()
        if sum(progress.values()) >= TOTAL:
            break
        screen.show(line(progress, fleet.alive, time.monotonic() - watch.began))
        if not abandoned and progress["noisy"] >= NOISY // 4:
            abandoned = kill_one(fleet, watch)
            screen.note(f"worker-1 was killed with {len(abandoned)} messages in its hands")
        time.sleep(0.1)
    screen.note(line(watch.progress(), fleet.alive, time.monotonic() - watch.began))
    return abandoned


def kill_one(fleet: Fleet, watch: Watch) -> set[int]:
    """SIGKILL a worker at a moment when it has messages; first hold it still, to see which."""
    pid = fleet.processes["worker-1"].pid
    assert pid is not None
    for _ in range(1000):
        os.kill(pid, signal.SIGSTOP)
        while watch.ask(
            "select from pg_stat_activity where application_name = 'worker-1' and state = 'active'"
        ):
            time.sleep(0.001)
        leases = watch.ask("select message_id from lonnymq.lease_status where worker = 'worker-1'")
        if leases:
            os.kill(pid, signal.SIGKILL)
            return {message_id for (message_id,) in leases}
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)
    return set()


def line(progress: dict[str, int], alive: int, elapsed: float) -> str:
    return (
        f"{elapsed:4.1f} s  noisy {progress['noisy']:,}/{NOISY:,}"
        f"  small {progress['small']}/{SMALL_TENANTS * SMALL}  capped {progress['capped']}/{CAPPED}"
        f"  throttled {progress['throttled']}/{THROTTLED}  buried {progress['dead']}/{BROKEN}"
        f"  workers {alive}"
    )


class Screen:
    """One line that changes, or, where that is not possible, a line a second."""

    def __init__(self) -> None:
        self.width = shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else None
        self.next_at = 0.0

    def show(self, text: str) -> None:
        if self.width is not None:
            print(f"\r{text[: self.width]:{self.width}}", end="", flush=True)
        elif time.monotonic() >= self.next_at:
            print(text, flush=True)
            self.next_at = time.monotonic() + 1

    def note(self, text: str) -> None:
        print(f"\r{text:{self.width}}" if self.width is not None else text, flush=True)


# Afterwards.


class Finding(NamedTuple):
    promised: str
    seen: str
    holds: bool


def report(queue: Queue, watch: Watch, abandoned: set[int]) -> int:
    """Print what was promised beside what was seen."""
    with psycopg.connect(watch.dsn) as connection:
        findings = list(compare(queue, connection, watch, abandoned))
    width = max(len(finding.promised) for finding in findings)
    print(f"\n{TOTAL:,} messages in {watch.elapsed:.1f} s, the start of the workers included\n")
    print(f"     {'promised':{width}}   seen")
    for finding in findings:
        print(f"{'ok ' if finding.holds else 'NO '}  {finding.promised:{width}}   {finding.seen}")
    return 0 if all(finding.holds for finding in findings) else 1


def compare(
    queue: Queue, connection: psycopg.Connection[Any], watch: Watch, abandoned: set[int]
) -> list[Finding]:
    def value(query: str, *values: Any) -> Any:
        row = connection.execute(query, values).fetchone()
        return row[0] if row else None

    done, distinct = value("select count(*) from done"), value("select count(distinct message_id) from done")
    dead = value("select count(*) from lonnymq.dead_letter where attempts = %s", MAX_ATTEMPTS)
    status = queue.status()
    left = status.waiting + status.leased
    # How many messages had been handed out when the last small tenant got its last one.
    after = value(
        "select count(*) from lonnymq.history where leased_at <= (select max(leased_at) from lonnymq.history"
        " where channel like 'small-%%' and attempt = 1)"
    )
    gap = value(
        "select min(gap) from (select leased_at - lag(leased_at) over (order by leased_at) as gap"
        " from lonnymq.history where channel = 'throttled') g"
    )
    again = value("select count(*) from done where attempt > 1 and message_id = any(%s)", list(abandoned))
    again += value("select count(*) from lonnymq.dead_letter where message_id = any(%s)", list(abandoned))
    problems = queue.verify()
    return [
        Finding(
            f"each of {TOTAL:,} messages ends once",
            f"{distinct:,} completed, {done - distinct} of them twice; {dead} buried; {left} left",
            distinct == done == TOTAL - BROKEN and left == 0,
        ),
        Finding(
            f"small tenants have all of theirs among the first {FAIR} released",
            f"among the first {after}",
            after is not None and after <= FAIR,
        ),
        Finding(
            f"capped: never more than {MAX_CONCURRENCY} at a time",
            f"at most {watch.most_leased} in {watch.samples:,} looks",
            0 < watch.most_leased <= MAX_CONCURRENCY,
        ),
        Finding(
            f"throttled: releases at least {RELEASE_INTERVAL_MS} ms apart",
            f"smallest gap {gap} ms",
            gap is not None and gap >= RELEASE_INTERVAL_MS,
        ),
        Finding(f"broken: {BROKEN} dead letters, {MAX_ATTEMPTS} attempts each", f"{dead}", dead == BROKEN),
        Finding(
            "what a killed worker held comes again",
            f"{again} of {len(abandoned)}",
            again == len(abandoned) > 0,
        ),
        Finding("the queue's own check finds nothing", f"{len(problems)} problems", not problems),
    ]


if __name__ == "__main__":
    sys.exit(main())
