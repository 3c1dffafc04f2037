"""The server's disk, a small tmpfs, fills up; later a file is deleted and there is room again.

With its log (pg_wal) on another disk PostgreSQL answers with errors, because tables cannot grow. With all on
one disk it stops, because the log cannot be written, and is started again once there is room.
"""

import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from lonnymq.embedded import EmbeddedServer
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.ledger import Event
from tests.chaos.run import Run, Scenario, Skip
from tests.chaos.stage import Stage, entries_of

DISK_MB = 400
ROOM_MB = 8
# Messages of this size fill what room is left within seconds.
SIZE = 20_000
FULL_S = 60.0
# The process that fills the disk does not wait for room.
CLIENT = {"retry_for_s": 2.0}


def play(run: Run, *, is_log_elsewhere: bool) -> Account:
    disk = mounted_tmpfs(run)
    settings = {"max_wal_size": "64MB", "min_wal_size": "32MB"}
    server = servers.start(run, data_dir=disk / "data", fsync=True, settings=settings)
    if is_log_elsewhere:
        move_log(server, run.directory / "pg_wal")
    stage = Stage(run, server.dsn)
    stage.usual_cast()
    stage.pause(run.seconds / 4)

    ballast = disk / "ballast"
    fill(disk, ballast)
    run.say(f"{ROOM_MB} MB are left on the disk")
    heavy = stage.producer(name="filler", channels=["heavy"], size=SIZE, per_second=100.0, client=CLIENT)
    full_since = time.monotonic()
    stage.until(lambda: is_full(stage, server, full_since), FULL_S, "the disk to be full")
    run.say("the disk is full: " + ("creates fail" if server.is_running else "the server has stopped"))
    stage.pause(run.seconds / 2)
    heavy.stop()
    stage.members.remove(heavy)

    ballast.unlink()
    if not server.is_running:
        server.start()
    stage.require_recovery(time.monotonic(), "room was made")
    stage.pause(run.seconds / 4)
    stage.members.append(heavy)
    return stage.settle()


def mounted_tmpfs(run: Run) -> Path:
    """Mount a small disk of memory for this run."""
    if os.geteuid() != 0:
        raise Skip("needs root to mount a small tmpfs")
    disk = run.directory / "disk"
    disk.mkdir(mode=0o755)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "lonnymq-chaos", str(disk)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=10)
    if ended.returncode != 0:
        raise Skip(f"needs to mount a small tmpfs, which is refused: {ended.stderr.strip()}")
    # Lazily: whoever still has a file open there is about to end.
    run.cleanup.callback(subprocess.run, ["umount", "--lazy", str(disk)], timeout=10, check=False)
    return disk


def move_log(server: EmbeddedServer, place: Path) -> None:
    """Let the server have its log on another disk."""
    log = server.data_dir / "pg_wal"
    server.stop()
    shutil.move(log, place)
    servers.give(place, owner=server.data_dir)
    log.symlink_to(place)
    server.start()


def fill(disk: Path, ballast: Path) -> None:
    """Write a file that leaves little room."""
    status = os.statvfs(disk)
    size = status.f_bavail * status.f_frsize - ROOM_MB * 2**20
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def is_full(stage: Stage, server: EmbeddedServer, since: float) -> bool:
    words = ("DiskFull", "No space left")
    failed = (one for one in entries_of(stage.producers) if one.event in (Event.REFUSED, Event.UNSURE))
    return not server.is_running or any(
        one.at > since and any(word in one.error for word in words) for one in failed
    )


SCENARIOS = [
    Scenario(
        "disk-full-of-tables",
        "the disk of the tables fills up, then there is room again",
        20,
        partial(play, is_log_elsewhere=True),
    ),
    Scenario(
        "disk-full-of-log",
        "the disk of tables and log fills up, then there is room again",
        20,
        partial(play, is_log_elsewhere=False),
    ),
]
