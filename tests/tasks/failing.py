"""A program whose tasks kill their process: `python -m tests.tasks.failing dsn notes`."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import lonnymq

app = lonnymq.App("" if len(sys.argv) < 3 else sys.argv[1])


def note(*parts: object) -> None:
    """Append a line to the file that the test reads; short appends are atomic."""
    with Path(sys.argv[2]).open("a", encoding="utf-8") as notes:
        notes.write(" ".join(map(str, parts)) + "\n")


def report_failure(message: lonnymq.Message, error: BaseException) -> None:
    note("failed", message.payload["task"], type(error).__name__)


async def report_burial(notice: Any) -> None:
    note("buried", notice.payload["task"])


def die() -> None:
    name = lonnymq.current_message().payload["task"]
    note("began", name)
    os.kill(os.getpid(), signal.SIGKILL)


for attempts in (1, 3):
    app.task(
        name=f"die_{attempts}", max_attempts=attempts, on_failure=report_failure, on_buried=report_burial
    )(die)

if __name__ == "__main__":
    sys.exit(app.worker(processes=2, concurrency=1, lease_s=3).run())
