"""What stands around a server before it runs: its user, its binaries, its directories and its guardian."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded import account as accounts
from lonnymq.embedded import binaries, cluster, places, postmaster, programs
from lonnymq.embedded.guard import Guard
from lonnymq.embedded.initdb import Initdb
from lonnymq.embedded.plan import Plan
from lonnymq.embedded.programs import Programs

# The socket lies in a directory that only the server's user can enter, hence trust. The loopback address is
# open to every user of the machine, hence a password.
HBA = """\
local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
"""


@dataclass(frozen=True)
class Home:
    """`removed` are the directories that vanish with the server."""

    data_dir: Path
    run_dir: Path
    log_path: Path
    programs: Programs
    guard: Guard
    removed: tuple[Path, ...]

    @property
    def hba_path(self) -> Path:
        return self.run_dir / "pg_hba.conf"

    def leave(self) -> None:
        """Removes what is temporary; the server has ended."""
        if any(path in self.data_dir.parents for path in self.removed):
            postmaster.free_shared_memory(self.data_dir)
        places.remove(self.removed)
        self.guard.release()


def settle(plan: Plan) -> Home:
    """Refuses first, makes afterwards: a refused directory is left as it was."""
    kept_dir = Path(os.path.realpath(plan.data_dir)) if plan.data_dir is not None else None
    found = binaries.find(plan.binaries)
    account = accounts.choose(kept_dir)
    if kept_dir is not None:
        cluster.refuse_unusable(kept_dir, account)
    run_dir = places.reserve(account, is_for_sockets=True)
    temporary = (run_dir,) if kept_dir is not None else (run_dir, places.reserve(account))
    data_dir = kept_dir or temporary[-1] / "data"
    building = cluster.building_name(data_dir)
    removed = (*temporary, building)
    guard = Guard(data_dir, removed)
    try:
        for path in temporary:
            places.make_private(path, account)
        runnable = programs.runnable(found, account, run_dir / "programs")
        if not cluster.is_cluster(data_dir):
            initdb = Initdb(runnable, run_dir, guard.alive_fd, is_synced=not plan.is_temporary)
            cluster.make(data_dir, building, initdb, time.monotonic() + plan.start_timeout_s)
        cluster.refuse_other_major(data_dir, runnable)
        log_path = (data_dir if plan.data_dir is not None else data_dir.parent) / "server.log"
        home = Home(data_dir, run_dir, log_path, runnable, guard, removed)
        places.write_private(home.hba_path, HBA, account)
        if not log_path.exists():
            places.write_private(log_path, "", account)
    except BaseException:
        places.remove(removed)
        guard.release()
        raise
    return home
