"""Programs of the examples, each in a process of its own."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forked import ForkedProgram
from tests.worker.workers import TIMEOUT_S, eventually

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def program(*arguments: str, dsn: str, log: Path) -> Iterator[None]:
    """Run a program until the block ends, which it must survive; then stop it with SIGTERM."""
    process = ForkedProgram(*arguments, cwd=ROOT, env={**os.environ, "LONNYMQ_DSN": dsn}, output=log)
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
