"""What a server needs before it runs: a user, binaries, directories and a watchdog."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded import account as accounts
from lonnymq.embedded import binaries, cluster, postmaster, private_files
from lonnymq.embedded.initdb import Initdb
from lonnymq.embedded.options import ServerOptions
from lonnymq.embedded.runner import ProgramRunner, make_runner
from lonnymq.embedded.watchdog import Watchdog

# Only the server's user can enter the directory of the socket, so connections there are trusted. Any user of
# the machine can connect to the loopback address, so a password is needed there.
HBA = """\
local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
"""


@dataclass(frozen=True)
class Workspace:
    """A prepared data directory and its surroundings; `dirs_to_remove` are removed with the server."""

    data_dir: Path
    run_dir: Path
    log_path: Path
    runner: ProgramRunner
    watchdog: Watchdog
    dirs_to_remove: tuple[Path, ...]

    @property
    def hba_path(self) -> Path:
        return self.run_dir / "pg_hba.conf"

    def clean_up(self) -> None:
        """Remove what is temporary, after the server has ended."""
        if any(path in self.data_dir.parents for path in self.dirs_to_remove):
            postmaster.free_shared_memory(self.data_dir)
        private_files.remove_directories(self.dirs_to_remove)
        self.watchdog.release()


def prepare(options: ServerOptions) -> Workspace:
    """Check everything before creating anything, so that a refused directory stays unchanged."""
    kept_dir = Path(os.path.realpath(options.data_dir)) if options.data_dir is not None else None
    found = binaries.find(options.binaries)
    account = accounts.choose(kept_dir)
    if kept_dir is not None:
        cluster.refuse_unusable(kept_dir, account)
    run_dir = private_files.choose_directory(account, is_for_sockets=True)
    temporary = (run_dir,) if kept_dir is not None else (run_dir, private_files.choose_directory(account))
    data_dir = kept_dir or temporary[-1] / "data"
    build_dir = cluster.build_path(data_dir)
    dirs_to_remove = (*temporary, build_dir)
    watchdog = Watchdog(data_dir, dirs_to_remove)
    try:
        for path in temporary:
            private_files.make_directory(path, account)
        runner = make_runner(found, account, run_dir / "programs")
        if not cluster.is_cluster(data_dir):
            initdb = Initdb(runner, run_dir, watchdog.alive_fd, is_synced=not options.is_temporary)
            cluster.make(data_dir, build_dir, initdb, time.monotonic() + options.start_timeout_s)
        cluster.refuse_other_major(data_dir, runner)
        log_path = (data_dir if options.data_dir is not None else data_dir.parent) / "server.log"
        workspace = Workspace(data_dir, run_dir, log_path, runner, watchdog, dirs_to_remove)
        private_files.write(workspace.hba_path, HBA, account)
        if not log_path.exists():
            private_files.write(log_path, "", account)
    except BaseException:
        private_files.remove_directories(dirs_to_remove)
        watchdog.release()
        raise
    return workspace
