"""The server's CPU time and WAL per message, which one connection creates, leases and completes."""

from collections.abc import Callable
from itertools import cycle, islice, product

from benchmarks import server_costs
from benchmarks.contenders import LonnyMQ
from benchmarks.load import channel_names
from benchmarks.results import round_figure
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

CHANNELS = channel_names(100)
BATCHES = (1, 10, 100)
HISTORIES = ("off", "metadata", "full")
WARM_UP_CYCLES = 20
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rows = []
    for history, batch in product(HISTORIES, BATCHES):
        messages = effort.messages // (10 if batch == 1 else 1)
        progress(f"  message: {messages:,} in batches of {batch}, history {history} ...")
        rows.append(measure(server, LonnyMQ(history=history), batch, messages))
        progress(f"  message: {rows[-1]}")
    return rows


def measure(server: Server, contender: LonnyMQ, batch: int, messages: int) -> Json:
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
        before, done = server_costs.read(dsn), 0
        while done < messages:
            done += one_cycle()
        spent = server_costs.read(dsn) - before
        session.close()
    return {
        "history": contender.history,
        "batch": batch,
        "messages": done,
        "server_cpu_s_per_million": None if spent.cpu_s is None else round_figure(spent.cpu_s / done * 1e6),
        "wal_bytes_per_message": round_figure(spent.wal_bytes / done),
    }
