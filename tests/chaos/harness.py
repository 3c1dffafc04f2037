"""The harness of a scenario: installs a queue, runs producers and workers, and accounts for every message."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from lonnymq import Queue
from tests.chaos import ledger
from tests.chaos.account import Account, Rules, compare
from tests.chaos.evidence import connect, gather
from tests.chaos.ledger import Entry, Event, Ledger
from tests.chaos.members import Member
from tests.chaos.payloads import payload
from tests.chaos.run import Run
from tests.chaos.sampler import LeaseSampler

CAPS = {"capped 1": 1, "capped 3": 3}
CHANNELS = [*CAPS, "tenant 1", "tenant 2", "tenant 3", "tenant 4"]
ACTIONS = {"work": 0.88, "fail": 0.04, "bury": 0.03, "cancel": 0.05}
LEASE_S = 3
RECOVERY_S = 5.0
DRAIN_S = 90.0
TICK_S = 0.05


class Harness:
    """`dsn` is the harness's own connection to the database; members may be given another."""

    def __init__(self, run: Run, dsn: str, *, caps: Mapping[str, int] = CAPS) -> None:
        self.run = run
        self.dsn = dsn
        self.rules = Rules(caps=caps)
        self.members: list[Member] = []
        self.problems: list[str] = []
        self._ledger = run.directory / "harness.ledger"
        with Queue(dsn) as queue:
            queue.install()
            queue.set(history="full")
            for channel, cap in caps.items():
                queue.channel(channel).set(max_concurrency=cap)
        self._sampler = run.cleanup.enter_context(LeaseSampler(dsn))

    # Members.

    def producer(self, *, dsn: str = "", **spec: Any) -> Member:
        """Start a producer with the given fields of tests.chaos.producer.ProducerSpec."""
        name = spec.pop("name", "") or f"producer {sum(not one.is_worker for one in self.members) + 1}"
        defaults = {"channels": CHANNELS, "per_second": 40.0, "actions": ACTIONS, "seconds": 0.03}
        given = {"dsn": dsn or self.dsn, "name": name, "seed": self.run.seed, **defaults, **spec}
        return self._member(name, "tests.chaos.producer", given)

    def worker(self, *, dsn: str = "", client: Mapping[str, Any] | None = None, **settings: Any) -> Member:
        """Start a worker with the given WorkerSettings."""
        name = settings.pop("name", "") or f"worker {sum(one.is_worker for one in self.members) + 1}"
        settings = {"concurrency": 4, "lease_s": LEASE_S, "shutdown_s": 10.0, "name": name, **settings}
        given = {"dsn": dsn or self.dsn, "client": dict(client or {}), "settings": settings}
        return self._member(name, "tests.chaos.worker", given)

    def start_default_members(self, *, dsn: str = "", **client: Any) -> None:
        """Start two producers and two workers, and wait until each has made progress."""
        began = time.monotonic()
        for _ in range(2):
            self.producer(dsn=dsn, client=client)
            self.worker(dsn=dsn, client=client)
        self.until(lambda: not self.idle_since(began), 30, "every producer and worker to start")

    def create(self, channel: str, do: str, *, seconds: float = 0.0, max_attempts: int | None = None) -> str:
        """Create a message from the harness itself, and return its uid."""
        uid = f"harness.{len(list(ledger.read(self._ledger)))}"
        own_ledger = Ledger(str(self._ledger))
        own_ledger.write(Event.TRIED, [uid], channel=channel, do=do)
        with Queue(self.dsn) as queue:
            queue.enqueue(channel, payload(uid, do, seconds), max_attempts=max_attempts)
        own_ledger.write(Event.ACKNOWLEDGED, [uid], is_synced=True)
        return uid

    def _member(self, name: str, module: str, arguments: dict[str, Any]) -> Member:
        member = Member(name, module, arguments, self.run.directory)
        self.run.cleanup.callback(member.kill)
        self.members.append(member)
        return member

    @property
    def workers(self) -> list[Member]:
        return [one for one in self.members if one.is_worker]

    @property
    def producers(self) -> list[Member]:
        return [one for one in self.members if not one.is_worker]

    # Waiting.

    def pause(self, seconds: float) -> None:
        """Let the members run for a while, restarting those that die."""
        until = time.monotonic() + seconds
        while True:
            for member in self.members:
                member.restart_if_dead()
            left_s = until - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(TICK_S, left_s))

    def until(self, condition: Callable[[], object], seconds: float, what: str) -> bool:
        """Wait for a condition; if it is not met in time, report a problem and continue."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                self.problem(f"waited {seconds:.0f} s without success for {what}")
                return False
            self.pause(0.2)
        return True

    def problem(self, text: str) -> None:
        self.problems.append(text)
        self.run.say(f"PROBLEM: {text}")

    # Progress of the members.

    def idle_since(self, moment: float, members: Sequence[Member] | None = None) -> list[Member]:
        """Return the members that have completed no create and no handler since this time."""
        return [one for one in members or self.members if first_progress(one, moment) is None]

    def require_recovery(self, since: float, what: str, *, within_s: float = RECOVERY_S) -> None:
        """Report a problem for every member that makes no progress soon after this time."""
        self.until(lambda: not self.idle_since(since), 60, f"every member to continue after {what}")
        times = {one.name: first_progress(one, since) for one in self.members}
        took = {name: at - since for name, at in times.items() if at is not None}
        self.run.say(f"after {what}: " + ", ".join(f"{name} in {s:.1f} s" for name, s in took.items()))
        for name, seconds in took.items():
            if seconds > within_s:
                self.problem(
                    f"{name} took {seconds:.1f} s to continue after {what}; allowed are {within_s:g} s"
                )

    def require_flow(
        self,
        within_s: float,
        what: str,
        *,
        since: float,
        workers: Iterable[Member],
        channels: Iterable[str] = (),
    ) -> None:
        """Report a problem if there was a longer gap between the ends of handlers."""
        wanted = set(channels)
        moments = [since, time.monotonic()]
        for entry in entries_of(workers):
            if entry.event is Event.ENDED and entry.at > since and (not wanted or entry.channel in wanted):
                moments.append(entry.at)
        moments.sort()
        gap_s, gap_at = max((after - before, before) for before, after in itertools.pairwise(moments))
        self.run.say(f"{what}: {len(moments) - 2} handlers ended, longest gap {gap_s:.1f} s")
        if gap_s > within_s:
            at = gap_at - self.run.began_at
            self.problem(
                f"{what}: no handler ended for {gap_s:.1f} s from {at:.1f} s on; allowed are {within_s:g} s"
            )

    # Accounting.

    def finish(self, rules: Rules | None = None, *, drain_s: float = DRAIN_S) -> Account:
        """Stop the producers, wait until the queue is empty, stop the workers, and return the account."""
        rules = rules or self.rules
        for producer in self.producers:
            producer.stop()
        self.until(lambda: self.count_live() == 0, drain_s, "the queue to be empty")
        for worker in self.workers:
            worker.stop()
        creates = itertools.chain(entries_of(self.producers), ledger.read(self._ledger))
        evidence = replace(gather(self.dsn), max_leased=self._sampler.max_leased)
        evidence.write(self.run.directory / "evidence")
        account = compare(creates, entries_of(self.workers), evidence, rules)
        account.problems += self.problems
        for member in self.members:
            account.problems += member.problems
        if not account.outcomes[Event.ACKNOWLEDGED]:
            account.problems.append("no create was acknowledged, so this run proves nothing")
        if rules.caps and not self._sampler.count:
            account.problems.append("no sample of leases was taken, so the limits were not tested")
        return account

    def count_live(self) -> int:
        """Return the number of waiting and leased messages; -1 while the database is unreachable."""
        try:
            with connect(self.dsn) as connection:
                row = connection.execute("select count(*) from lonnymq.message").fetchone()
        except psycopg.OperationalError:
            return -1
        return int(row[0]) if row else -1

    def rules_with(self, **changes: Any) -> Rules:
        """Return the rules with some changes."""
        return replace(self.rules, **changes)


def entries_of(members: Iterable[Member]) -> Iterable[Entry]:
    return (entry for member in members for entry in member.entries())


def first_progress(member: Member, since: float) -> float | None:
    """Return when the member first made progress after a time."""
    wanted = Event.ENDED if member.is_worker else Event.ACKNOWLEDGED
    return next((one.at for one in member.entries() if one.event is wanted and one.at > since), None)
