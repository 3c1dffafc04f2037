"""The server's CPU time and WAL of one message's life, created, leased and completed by one connection."""

from collections.abc import Callable
from itertools import cycle, islice, product

from benchmarks import costs
from benchmarks.contenders import Ours
from benchmarks.load import channel_names
from benchmarks.results import rounded
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

CHANNELS = channel_names(100)
BATCHES = (1, 10, 100)
HISTORIES = ("off", "metadata", "full")
WARM_UP_CYCLES = 20
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    found = []
    for history, batch in product(HISTORIES, BATCHES):
        messages = effort.messages // (10 if batch == 1 else 1)
        progress(f"  message: {messages:,} in batches of {batch}, history {history} ...")
        found.append(measure(server, Ours(history=history), batch, messages))
        progress(f"  message: {found[-1]}")
    return found


def measure(server: Server, contender: Ours, batch: int, messages: int) -> Json:
    with server.database() as dsn:
        contender.install(dsn)
        session = contender.session(dsn)
        names = cycle(CHANNELS)

        def one_cycle() -> int:
            session.create_many(list(islice(names, batch)))
            leases = session.dequeue(batch)
            if leases:
                session.complete(leases)
            return len(leases)

        for _ in range(WARM_UP_CYCLES):
            one_cycle()
        before, done = costs.read(dsn), 0
        while done < messages:
            done += one_cycle()
        spent = costs.read(dsn) - before
        session.close()
    return {
        "history": contender.history,
        "batch": batch,
        "messages": done,
        "server_cpu_s_per_million": None if spent.cpu_s is None else rounded(spent.cpu_s / done * 1e6),
        "wal_bytes_per_message": rounded(spent.wal_bytes / done),
    }
