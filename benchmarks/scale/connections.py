"""How much more connections bring, and when they bring no more."""

from collections.abc import Callable

from benchmarks.bench import Figure
from benchmarks.contenders import Ours
from benchmarks.load import channel_names, cycled
from benchmarks.results import rounded
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

CHANNELS = channel_names(100)
BATCH = 10
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rates: dict[int, list[float]] = {count: [] for count in effort.connections}
    for _ in range(effort.rounds):
        for count, found in rates.items():
            found.append(measure(server, effort, count))
            progress(f"  connections: {count}: {found[-1]:,.0f} messages/s")
    return [
        {
            "connections": count,
            "messages_per_s": rounded(Figure(found)),
            "rounds": [rounded(rate) for rate in found],
        }
        for count, found in rates.items()
    ]


def measure(server: Server, effort: Effort, count: int) -> float:
    with server.database() as dsn:
        Ours().install(dsn)
        return cycled(Ours(), dsn, CHANNELS, batch=BATCH, window_s=effort.window_s, workers=count)
