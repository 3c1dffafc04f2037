"""What a dashboard costs the server while it is open in several tabs: `python -m benchmarks.dashboard`.

Fills a queue, serves its dashboard, and lets as many tabs as asked for read their pages every two seconds, as
browsers do. Prints the CPU time of the server beyond that of an idle one, as a part of one core.
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Sequence
from urllib.request import urlopen

import lonnymq
from benchmarks import server_costs
from lonnymq.dashboard import asgi_app

REFRESH_S = 2.0
PAGES = ("/", "/channels", "/channels?order=messages", "/channels/c7", "/channels?order=name&prefix=c1")
BATCH = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--tabs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with lonnymq.embedded(fsync=False) as server:
        fill(server.dsn, options.channels, options.messages)
        address = serve(server.dsn)
        read_pages(address, PAGES)
        before = server_costs.read(server.dsn)
        reads = watch(address, options.tabs, options.seconds)
        cpu_s = (server_costs.read(server.dsn) - before).cpu_s
        time.sleep(40)  # Until the dashboard has stopped looking.
        before = server_costs.read(server.dsn)
        time.sleep(options.seconds / 2)
        idle_s = (server_costs.read(server.dsn) - before).cpu_s
    if cpu_s is None or idle_s is None:
        raise SystemExit("the server's processes cannot be seen on this machine")
    share = cpu_s / options.seconds - 2 * idle_s / options.seconds
    print(f"PostgreSQL {server.version}; {options.channels:,} channels, {options.messages:,} messages")
    print(
        f"{options.tabs} tabs read {reads:,} pages in {options.seconds:g} s: {100 * share:.1f} % of one core"
    )


def fill(dsn: str, channels: int, messages: int) -> None:
    with lonnymq.Queue(dsn) as queue:
        queue.install()
        for start in range(0, messages, BATCH):
            numbers = range(start, min(start + BATCH, messages))
            queue.enqueue_many([lonnymq.NewMessage(channel=f"c{n % channels}", payload=n) for n in numbers])
        # So that most channels have a turn.
        for _ in range(20):
            queue.dequeue(limit=500)


def serve(dsn: str) -> str:
    import uvicorn

    app = asgi_app(dsn, access="operator")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"


def watch(address: str, tabs: int, seconds: float) -> int:
    """Read a page per tab every two seconds; return how many were read."""

    async def tab(place: int) -> int:
        path = PAGES[place % len(PAGES)]
        until, reads = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            await asyncio.to_thread(read_pages, address, [path])
            reads += 1
            await asyncio.sleep(REFRESH_S)
        return reads

    async def all_tabs() -> int:
        return sum(await asyncio.gather(*map(tab, range(tabs))))

    return asyncio.run(all_tabs())


def read_pages(address: str, paths: Sequence[str]) -> None:
    for path in paths:
        with urlopen(address + path) as answer:
            answer.read()


if __name__ == "__main__":
    main()
