"""The dashboard, served while the demo runs: `lonnymq serve` in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def dashboard(dsn: str) -> Iterator[str]:
    """Serve the dashboard on a free port, and yield what it says about its address."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "lonnymq",
            "serve",
            "--port",
            "0",
            "--environment",
            "demo",
            "--colour",
            "purple",
        ],
        cwd=ROOT,
        env={**os.environ, "LONNYMQ_DSN": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().partition(" ;")[0]
    finally:
        process.terminate()
        process.wait(timeout=15)
        process.stdout.close()
