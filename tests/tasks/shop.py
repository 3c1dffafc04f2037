"""A user's program with an app, tasks and a cron; the environment names its database."""

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import lonnymq

queue = lonnymq.Queue(os.environ.get("SHOP_DSN", "dbname=nobody"))
app = lonnymq.App(queue)


def note(line: str) -> None:
    """Append a line to the file that the test reads; short appends are atomic."""
    with Path(os.environ["SHOP_NOTES"]).open("a", encoding="utf-8") as notes:
        notes.write(line + "\n")


@app.task(max_attempts=3, retry=lonnymq.Retry(first_s=0.01, jitter=0.0))
def charge(order: UUID, amount: Decimal, *, at: datetime | None = None) -> None:
    message = lonnymq.current_message()
    if message.attempt < 2:
        raise ConnectionError("the bank is away")
    note(f"charge {order} {amount!r} {at!r} {message.channel} {message.attempt}")
    receipt.options(key=f"receipt {order}").enqueue(message.channel, order)


@app.task()
async def receipt(order: UUID) -> None:
    note(f"receipt {order}")


@app.task(max_attempts=2, retry=lonnymq.Retry(first_s=0.0))
def break_() -> None:
    raise RuntimeError("always")


@app.task(timeout=0.05, max_attempts=1)
async def hang() -> None:
    import asyncio

    await asyncio.sleep(60)


@app.cron("* * * * * *", channel="clock", catch_up="all", arguments={"mark": "cron"})
@app.task(name="tock")
async def tick(mark: str) -> None:
    message = lonnymq.current_async_message()
    due = lonnymq.tick_of(message)
    assert due is not None
    assert due <= datetime.now(UTC)
    note(f"tick {due.isoformat()} {mark} {os.getpid()}")


if __name__ == "__main__":
    import sys

    sys.exit(app.worker(processes=int(sys.argv[1]), concurrency=4).run())
