"""The files that the page on deployment shows work as they are."""

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from configparser import ConfigParser
from pathlib import Path

from tests.examples.pages import ROOT
from tests.worker.workers import TIMEOUT_S, eventually

JOBS = """
import lonnymq

app = lonnymq.App(lonnymq.Queue())
"""


def test_the_service_for_systemd_starts_and_stops_a_worker(dsn: str, tmp_path: Path) -> None:
    """The service's directories are below the test's own."""
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    unit = re.search(r"^ {4}\[Unit\]\n(?:(?: {4}.*)?\n)+", page, re.MULTILINE)
    assert unit
    parser = ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(textwrap.dedent(unit[0]))
    service = parser["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "lonnymq"
    package = tmp_path / "srv" / "shop" / "shop"
    package.mkdir(parents=True)
    (package / "jobs.py").write_text(JOBS)
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        worker = subprocess.Popen(
            [sys.executable, "-m", "lonnymq", *arguments],
            cwd=tmp_path / service.get("WorkingDirectory", "/").lstrip("/"),
            env={**os.environ, "LONNYMQ_DSN": dsn},
            stderr=stderr,
        )
    try:
        eventually(lambda: "working as" in log.read_text() or worker.poll() is not None)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT_S) == 0, log.read_text()
    finally:
        worker.kill()
        worker.wait()
