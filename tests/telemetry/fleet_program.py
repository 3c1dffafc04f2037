"""A worker of two processes, which writes a line when their figures change: `python -m ... DSN FILE`."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from lonnymq import Message, Worker, WorkerSettings, supervise
from lonnymq.worker.health import Probe


def handle(message: Message) -> None:
    time.sleep(message.payload)


def create(dsn: str) -> Worker:
    return Worker(dsn, handle, settings=WorkerSettings(concurrency=2, shutdown_s=5))


@contextmanager
def writing(fleet: Probe, target: Path) -> Iterator[None]:
    """Append what all processes have counted, until the program ends: a reader can miss no change."""

    def write() -> None:
        last = ""
        while True:
            figures = fleet.figures()
            assert figures is not None
            completed = sum(task.outcomes["completed"] for task in figures.tasks.values())
            shown = {"completed": completed, "processes": figures.processes, "busy": figures.busy}
            line = json.dumps({**shown, "slots": figures.slots})
            if line != last:
                with target.open("a") as lines:
                    lines.write(line + "\n")
                last = line
            time.sleep(0.05)

    threading.Thread(target=write, daemon=True).start()
    yield


def main(dsn: str, file: str) -> int:
    code = supervise(partial(create, dsn), 2, shutdown_s=5, watch=partial(writing, target=Path(file)))
    time.sleep(0.2)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
