"""Real servers, real processes, real kills."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq.embedded import EmbeddedError, binaries, embedded, postmaster

SOURCE_DIR = Path(__file__).parents[2] / "src"
PACKAGES = sysconfig.get_path("purelib")


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Asks the server one question and returns the first column of the first row."""

    def ask(dsn: str, question: str = "select 1") -> Any:
        with psycopg.connect(dsn, autocommit=True) as connection:
            cursor = connection.execute(question.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    return ask


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that every user can enter, unlike pytest's tmp_path, which is closed to others."""
    path = Path(tempfile.mkdtemp(prefix="embedded-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """One run of initdb for all tests that only need some kept cluster."""
    root = Path(tempfile.mkdtemp(prefix="embedded-test-", dir="/tmp"))
    root.chmod(0o755)
    embedded(root / "data", fsync=False).stop()
    yield root / "data"
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def kept_dir(template: Path, open_dir: Path) -> Path:
    """A cluster of its own for one test, shut down cleanly."""
    subprocess.run(["cp", "-Rp", template, open_dir / "data"], check=True)
    return open_dir / "data"


@pytest.fixture
def run_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a Python process with our sources; it is killed at the end of the test at the latest."""
    started: list[subprocess.Popen[str]] = []

    def run_python(code: str, *arguments: str, python: str = sys.executable, **popen: Any) -> Any:
        # Also for another Python than ours, which has none of our packages.
        places = [str(SOURCE_DIR), PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
        search_path = os.pathsep.join(places)
        environment = {**os.environ, "PYTHONPATH": search_path, **popen.pop("env", {})}
        process = subprocess.Popen(
            [python, "-u", "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            **popen,
        )
        started.append(process)
        return process

    yield run_python
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """For what other processes do on their own; the deadline is far beyond the usual."""

    def eventually(is_true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not is_true():
            assert time.monotonic() < deadline, "still not true after 20 s"
            time.sleep(0.02)

    return eventually


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    return lambda pid: not postmaster.is_alive(pid)


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def system_bin_dir() -> Path:
    try:
        return binaries.find("system").bin_dir
    except EmbeddedError:
        pytest.skip("no PostgreSQL is installed on this machine")
