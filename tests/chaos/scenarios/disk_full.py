"""The server's disk, a small tmpfs, fills up; later a file is deleted to make room.

With the WAL on another disk, PostgreSQL answers with errors, because tables cannot grow. With everything on
one disk, it stops, because the WAL cannot be written, and is started again when there is room.
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
from tests.chaos.harness import Harness, entries_of
from tests.chaos.ledger import Event
from tests.chaos.run import Run, Scenario, Skip

DISK_MB = 400
ROOM_MB = 8
# Messages of this size fill the remaining space within seconds.
SIZE = 20_000
FULL_S = 60.0
# The producer that fills the disk does not wait for space.
CLIENT = {"retry_for_s": 2.0}


def execute(run: Run, *, is_wal_on_another_disk: bool) -> Account:
    disk = mount_tmpfs(run)
    settings = {"max_wal_size": "64MB", "min_wal_size": "32MB"}
    server = servers.start(run, data_dir=disk / "data", fsync=True, settings=settings)
    if is_wal_on_another_disk:
        move_wal(server, run.directory / "pg_wal")
    harness = Harness(run, server.dsn)
    harness.start_default_members()
    harness.pause(run.seconds / 4)

    ballast = disk / "ballast"
    fill(disk, ballast)
    run.say(f"{ROOM_MB} MB are left on the disk")
    filler = harness.producer(name="filler", channels=["heavy"], size=SIZE, per_second=100.0, client=CLIENT)
    full_since = time.monotonic()
    harness.until(lambda: is_full(harness, server, full_since), FULL_S, "the disk to be full")
    run.say("the disk is full: " + ("creates fail" if server.is_running else "the server has stopped"))
    harness.pause(run.seconds / 2)
    filler.stop()
    harness.members.remove(filler)

    ballast.unlink()
    if not server.is_running:
        server.start()
    harness.require_recovery(time.monotonic(), "space was freed")
    harness.pause(run.seconds / 4)
    harness.members.append(filler)
    return harness.finish()


def mount_tmpfs(run: Run) -> Path:
    """Mount a small tmpfs for this run."""
    if os.geteuid() != 0:
        raise Skip("needs root to mount a small tmpfs")
    disk = run.directory / "disk"
    disk.mkdir(mode=0o755)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "lonnymq-chaos", str(disk)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=10)
    if ended.returncode != 0:
        raise Skip(f"needs to mount a small tmpfs, which failed: {ended.stderr.strip()}")
    # Lazily, because processes that are about to end may still have files open there.
    run.cleanup.callback(subprocess.run, ["umount", "--lazy", str(disk)], timeout=10, check=False)
    return disk


def move_wal(server: EmbeddedServer, place: Path) -> None:
    """Move the server's WAL to another disk."""
    wal = server.data_dir / "pg_wal"
    server.stop()
    shutil.move(wal, place)
    servers.change_owner(place, like=server.data_dir)
    wal.symlink_to(place)
    server.start()


def fill(disk: Path, ballast: Path) -> None:
    """Create a file that leaves little space."""
    status = os.statvfs(disk)
    size = status.f_bavail * status.f_frsize - ROOM_MB * 2**20
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def is_full(harness: Harness, server: EmbeddedServer, since: float) -> bool:
    signs = ("DiskFull", "No space left")
    failed = (one for one in entries_of(harness.producers) if one.event in (Event.REFUSED, Event.UNSURE))
    return not server.is_running or any(
        one.at > since and any(sign in one.error for sign in signs) for one in failed
    )


SCENARIOS = [
    Scenario(
        "disk-full-of-tables",
        "the disk with the tables fills up; later there is space again",
        20,
        partial(execute, is_wal_on_another_disk=True),
    ),
    Scenario(
        "disk-full-of-log",
        "the disk with tables and WAL fills up; later there is space again",
        20,
        partial(execute, is_wal_on_another_disk=False),
    ),
]
