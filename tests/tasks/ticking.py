"""A process that ticks by a simulated clock: `python -m tests.tasks.ticking dsn start end speed skew_s`.

It prints "ready", and starts when it reads the real time of the start.
"""

import asyncio
import sys
import time
from datetime import datetime, timedelta

from lonnymq import AsyncQueue
from lonnymq.tasks.ticker import tick


async def main(dsn: str, start: str, end: str, speed: str, skew_s: str) -> None:
    begin, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    async with AsyncQueue(dsn) as queue:
        await queue.cron.list()
        print("ready", flush=True)
        began = float(sys.stdin.readline())
        now = begin
        while now < last:
            simulated_s = (time.time() - began) * float(speed) + float(skew_s)
            now = min(last, begin + timedelta(seconds=max(0.0, simulated_s)))
            while await tick(queue, ["declared"], now=now) < 0.1 and not await _is_done(queue, now):
                pass


async def _is_done(queue: AsyncQueue, now: datetime) -> bool:
    return not (await queue.cron.due(["declared"], now=now)).crons


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
