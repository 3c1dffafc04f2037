"""Fixtures for tests with real servers and processes."""

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
    """Executes one statement and returns the first column of the first row."""

    def ask(dsn: str, question: str = "select 1") -> Any:
        with psycopg.connect(dsn, autocommit=True) as connection:
            cursor = connection.execute(question.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    return ask


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that every user can enter, unlike pytest's tmp_path."""
    path = Path(tempfile.mkdtemp(prefix="embedded-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A cluster from a single initdb, for all tests that need any existing cluster."""
    root = Path(tempfile.mkdtemp(prefix="embedded-test-"))
    root.chmod(0o755)
    embedded(root / "data", fsync=False).stop()
    yield root / "data"
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def kept_dir(template: Path, open_dir: Path) -> Path:
    """A cleanly shut down cluster for one test."""
    subprocess.run(["cp", "-Rp", template, open_dir / "data"], check=True)
    return open_dir / "data"


@pytest.fixture
def run_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python processes with our sources, and kills them at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def run_python(code: str, *arguments: str, python: str = sys.executable, **popen: Any) -> Any:
        # The Python may be another one, without our packages.
        paths = [str(SOURCE_DIR), PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
        search_path = os.pathsep.join(paths)
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
    """Waits for what other processes do; the timeout is much longer than usually needed."""

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
