"""The files that the page on deployment shows work as they are."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from tests.examples.pages import ROOT
from tests.worker.workers import TIMEOUT_S

JOBS = """
import lonnymq

app = lonnymq.App(lonnymq.Queue())
"""


def test_the_service_for_systemd_starts_and_stops_a_worker(dsn: str, tmp_path: Path) -> None:
    """The service's directories are below the test's own."""
    parser = ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "deploy" / "systemd" / "shop-worker.service", encoding="utf-8")
    service = parser["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "lonnymq"
    package = tmp_path / "srv" / "shop" / "shop"
    package.mkdir(parents=True)
    (package / "jobs.py").write_text(JOBS)
    # Another port than that of the file, which may be taken.
    arguments[arguments.index("--health-port") + 1] = "0"
    log = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, log.open("wb") as stderr:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(TIMEOUT_S)
        worker = subprocess.Popen(
            [sys.executable, "-m", "lonnymq", *arguments],
            cwd=tmp_path / service.get("WorkingDirectory", "/").lstrip("/"),
            env={**os.environ, "LONNYMQ_DSN": dsn, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stderr=stderr,
        )
        try:
            while (state := systemd.recv(1000)) != b"READY=1":
                assert state.startswith(b"STATUS=")
            assert service["Type"] == "notify"
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(TIMEOUT_S) == 0, log.read_text()
            while systemd.recv(1000) != b"STOPPING=1":
                pass
        finally:
            worker.kill()
            worker.wait()
