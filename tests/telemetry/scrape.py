"""Reads the metrics of a real exporter or worker."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.conftest import environment

TIMEOUT_S = 200.0
PROMTOOL = shutil.which("promtool")


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def get(url: str, method: str = "GET") -> Answer:
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return Answer(answer.status, answer.read().decode(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read().decode(), dict(error.headers))


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return all samples by their names and the values of their labels, in the order of the labels' names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def check_with_promtool(text: str) -> None:
    if PROMTOOL is None:
        pytest.skip("needs promtool, from Debian's package prometheus")
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def eventually(is_true: Callable[[], Any]) -> Any:
    """Return the first true answer."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := is_true()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


class Process:
    """A command that logs where it listens; `url` ends with the port."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.log: list[str] = []
        self.url = ""
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(iter(self.process.stderr.readline, ""))

    def find_url(self) -> str | None:
        assert self.process.poll() is None, "".join(self.log)
        found = re.search(r"(http://\S+:\d+)/", "".join(self.log))
        return found and found[1]

    def stop(self, signal: int) -> int:
        self.process.send_signal(signal)
        return self.process.wait(TIMEOUT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        self._reading.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def running(dsn: str, *arguments: str, cwd: Path | None = None, **more: str) -> Iterator[Process]:
    """Run a command of lonnymq that listens on a port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lonnymq", *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(dsn, **more),
    )
    started = Process(process)
    try:
        started.url = eventually(started.find_url)
        yield started
    finally:
        started.close()
