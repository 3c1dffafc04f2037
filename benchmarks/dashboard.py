"""What the dashboard costs the database: `python -m benchmarks.dashboard`.

Fills a small and a large queue, and opens each page once in each. Prints how many pages of the database that
touches, and how long it takes in the large queue. Then lets as many tabs as asked for read their pages every
two seconds, as browsers do, and prints the CPU time of the server beyond that of an idle one, as a part of
one core. With a million channels it takes about ten minutes and 10 GB of disk.
"""

import argparse
import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.request import urlopen

import psycopg

import lonnymq
from benchmarks import server_costs
from benchmarks.contenders.lonnymq import LonnyMQ
from benchmarks.load import channel_names
from benchmarks.scale.channels import first_turns
from lonnymq.dashboard import asgi_app, sampler

REFRESH_S = 2.0
CHANNEL = "tenant-7"
PAGES = (
    *("/", "/channels", "/channels?order=messages", "/channels?order=name&prefix=tenant-1"),
    *(f"/channels/{CHANNEL}", "/messages", "/messages?status=leased", "/messages?status=scheduled"),
    *(f"/messages?channel={CHANNEL}", "/messages?prefix=tenant-1", "/messages/{message}"),
    *("/failures", "/failures?error=no+disk", f"/failures?channel={CHANNEL}"),
    *("/crons", "/workers", "/system", "/audit"),
)
# What somebody leaves open.
TABS = ("/", "/channels", "/channels?order=messages", f"/channels/{CHANNEL}", "/messages")
# Vacuum must keep up with a million leases in a few minutes, or the table of leases would stay as large.
SETTINGS = {"autovacuum_naptime": "1s", "shared_buffers": "1GB", "max_wal_size": "2GB"}
TOUCHED = (
    "select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint"
    " from pg_statio_all_tables where schemaname = 'lonnymq'"
)
OTHERS = (
    "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and backend_type = 'client backend'"
)
# The one call that counts everything; it runs in the background, and rarely.
NO_EXACT_COUNT = "update lonnymq.exact_count set begun_at = clock_timestamp(), took_ms = 3600000"
BURIED_SHARE, LEASED = 50, 400


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--channels", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=5_000_000, help="How many are left at the end.")
    parser.add_argument("--small-channels", type=int, default=2_000)
    parser.add_argument("--tabs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args(arguments)
    sizes = {
        options.small_channels: options.small_channels * options.messages // options.channels,
        options.channels: options.messages,
    }
    touched: list[list[int]] = []
    for channels, messages in sizes.items():
        with lonnymq.embedded(fsync=False, settings=SETTINGS) as server:
            message = fill(server.dsn, channels, messages)
            paths = [page.format(message=message) for page in PAGES]
            touched.append([pages_touched(server.dsn, path) for path in paths])
            if channels == options.channels:
                with serve(server.dsn) as address:
                    times = [median_ms(address, path) for path in paths]
                    share = share_of_a_core(server.dsn, address, options.tabs, options.seconds)
    print(f"\nPages of the database that each page touches, with PostgreSQL {server.version}:\n")
    print(f"| page | {' | '.join(f'{c:,} channels, {m:,} messages' for c, m in sizes.items())} | time |")
    print("| --- | ---: | ---: | ---: |")
    for page, small, large, ms in zip(PAGES, *touched, times, strict=True):
        print(f"| `{page}` | {small:,} | {large:,} | {ms:.0f} ms |")
    print(f"\n{options.tabs} tabs for {options.seconds:g} s: {share:.1%} of one core of the server")


def fill(dsn: str, channels: int, messages: int) -> int:
    """Fill a queue in which each channel has had a turn; return the id of a live message."""
    contender = LonnyMQ(history="metadata")
    contender.install(dsn)
    print(f"filling {channels:,} channels with {messages:,} messages ...", flush=True)
    # Each channel's first message is completed.
    contender.fill(dsn, channel_names(channels), messages + channels)
    first_turns(contender.session(dsn), channels, lambda line: print(line, flush=True))
    with lonnymq.Queue(dsn) as queue, psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(0, channels // BURIED_SHARE, 500):
            queue.bury(queue.dequeue(limit=500), error="Traceback\nno disk")
        for number in range(200):
            queue.cron.set(f"cron {number}", "0 3 * * *", channel=CHANNEL, payload=number)
            with queue.audit.action("olga", "channel_pause", f"tenant-{number}"):
                pass
        queue.enqueue_many(
            [lonnymq.NewMessage(channel=f"tenant-{n}", payload=n, delay=3600) for n in range(1_000)]
        )
        queue.dequeue(limit=LEASED, lease_s=24 * 3600)
        queue.count(timeout_s=300)
        connection.execute(NO_EXACT_COUNT)
        connection.execute("vacuum (analyze)")
        # It would touch pages at any time.
        connection.execute("alter system set autovacuum = off")
        connection.execute("select pg_reload_conf()")
        return queue.messages(limit=1, preview_bytes=0).items[0].id


def pages_touched(dsn: str, path: str) -> int:
    """Return how many pages of the database a dashboard touches that is opened for one page."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        before = _touched(connection)
        with serve(dsn) as address:
            read_page(address, path)
        # The statistics of a session are complete when it has ended.
        while connection.execute(OTHERS).fetchone() != (0,):
            time.sleep(0.05)
        return _touched(connection) - before


def _touched(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    [(found,)] = connection.execute(TOUCHED).fetchall()
    return int(str(found))


@contextmanager
def serve(dsn: str) -> Iterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(asgi_app(dsn, access="operator"), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def median_ms(address: str, path: str) -> float:
    found = []
    for _ in range(5):
        began_at = time.perf_counter()
        read_page(address, path)
        found.append((time.perf_counter() - began_at) * 1000)
    return statistics.median(found)


def share_of_a_core(dsn: str, address: str, tabs: int, seconds: float) -> float:
    """Return the CPU time of the server while this many tabs are open, beyond that of an idle server."""

    def cpu_s(run: Callable[[], None]) -> float:
        before = server_costs.read(dsn)
        run()
        found = (server_costs.read(dsn) - before).cpu_s
        if found is None:
            raise SystemExit("the server's processes cannot be seen on this machine")
        return found

    print(f"reading {tabs} pages every {REFRESH_S:g} s for {seconds:g} s ...", flush=True)
    busy_s = cpu_s(lambda: watch(address, tabs, seconds))
    time.sleep(sampler.IDLE_S + 2 * REFRESH_S)  # Until the dashboard has stopped looking.
    return (busy_s - cpu_s(lambda: time.sleep(seconds))) / seconds


def watch(address: str, tabs: int, seconds: float) -> None:
    """Read a page per tab every two seconds."""

    async def tab(path: str) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.to_thread(read_page, address, path)
            await asyncio.sleep(REFRESH_S)

    async def all_tabs(paths: Sequence[str]) -> None:
        await asyncio.gather(*map(tab, paths))

    asyncio.run(all_tabs([TABS[place % len(TABS)] for place in range(tabs)]))


def read_page(address: str, path: str) -> None:
    with urlopen(address + path) as answer:
        answer.read()


if __name__ == "__main__":
    main()
