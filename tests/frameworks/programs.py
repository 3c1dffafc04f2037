"""Programs of the examples, each in a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.worker.workers import TIMEOUT_S, eventually

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def program(*arguments: str, dsn: str, log: Path) -> Iterator[None]:
    """Run a program until the block ends, which it must survive; then stop it with SIGTERM."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={**os.environ, "LONNYMQ_DSN": dsn},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        assert process.poll() is None, log.read_text()
        process.terminate()
        process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait()


def address_of(log: Path) -> str:
    found = eventually(lambda: re.search(r"running on (http://\S+)", log.read_text()), f"a server, {log}")
    return str(found[1])
