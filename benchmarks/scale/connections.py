"""The rate by number of connections."""

from collections.abc import Callable

from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Median
from benchmarks.load import channel_names, measure_cycles
from benchmarks.results import round_figure
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

CHANNELS = channel_names(100)
BATCH = 10
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rates: dict[int, list[float]] = {count: [] for count in effort.connections}
    for _ in range(effort.rounds):
        for count, rounds in rates.items():
            rounds.append(measure(server, effort, count))
            progress(f"  connections: {count}: {rounds[-1]:,.0f} messages/s")
    return [
        {
            "connections": count,
            "messages_per_s": round_figure(Median(rounds)),
            "rounds": [round_figure(rate) for rate in rounds],
        }
        for count, rounds in rates.items()
    ]


def measure(server: Server, effort: Effort, count: int) -> float:
    with server.database() as dsn:
        LonnyMQ().install(dsn)
        return measure_cycles(LonnyMQ(), dsn, CHANNELS, batch=BATCH, window_s=effort.window_s, workers=count)
