"""The server is lost after a mistake, and a backup is restored to a point in time before it.

All messages created since that point are lost, and all that ended since then are processed again. Ids are
issued again; `message.uid` is not.
"""

import shutil
import time
from pathlib import Path

from lonnymq.embedded import EmbeddedServer
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.aftermath import count_repetitions, examine, require_unique_uids
from tests.chaos.evidence import connect
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario, wait_for
from tests.proxy import Proxy

# For how long work goes on after the point in time to which the backup is restored.
LOST_S = 3.0


def execute(run: Run) -> Account:
    home, archive = run.directory / "primary", run.directory / "archive"
    archive.mkdir(mode=0o777)
    archive.chmod(0o777)
    archiving = {"archive_mode": "on", "archive_command": f"cp %p {archive}/%f"}
    primary = servers.start(run, data_dir=home / "data", fsync=True, settings=archiving)
    for directory in (home, archive):
        run.cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    proxy = run.cleanup.enter_context(Proxy(primary.dsn))
    harness = Harness(run, proxy.dsn)
    copy = servers.back_up(run, primary, "restored")
    harness.start_default_members()
    harness.pause(run.seconds / 2)
    target_at = time.monotonic()
    with connect(primary.dsn) as connection:
        connection.execute("select pg_create_restore_point('before the mistake')")
        harness.pause(LOST_S)
        proxy.refuse_connections()
        segment = connection.execute("select pg_walfile_name(pg_switch_wal())").fetchone()
        assert segment is not None
        wait_for(lambda: (archive / segment[0]).exists(), 30, "the WAL to be archived")
    primary.kill()
    run.say("the server was lost")
    restored = restore(run, copy, archive)
    found = examine(run, restored.dsn)
    proxy.forward_to(restored.dsn)
    # Until now, no server has answered again. What the lost one answered may have been noted a little later.
    lost = (target_at, time.monotonic())
    proxy.accept_connections()
    harness.require_recovery(time.monotonic(), "the restore")
    harness.pause(run.seconds / 2)
    account = harness.finish(harness.rules_with(tail=lost))
    if "timeline" not in found:
        account.problems.append("the doctor did not notice that the server was restored")
    if not account.lost_tail or not count_repetitions(harness):
        account.problems.append("nothing was lost or repeated, so this run did not test a restore")
    require_unique_uids(harness, account, has_reissued_ids=True)
    return account


def restore(run: Run, copy: Path, archive: Path) -> EmbeddedServer:
    """Start the backup, and return when it has recovered to the restore point."""
    (copy / "recovery.signal").touch()
    restored = servers.start(
        run,
        data_dir=copy,
        fsync=True,
        settings={
            "archive_mode": "off",
            "restore_command": f"cp {archive}/%f %p",
            "recovery_target_name": "before the mistake",
            "recovery_target_action": "promote",
        },
    )
    with connect(restored.dsn) as connection:

        def is_primary() -> bool:
            return connection.execute("select pg_is_in_recovery()").fetchone() == (False,)

        wait_for(is_primary, 60, "the end of the recovery")
    run.say("the backup was restored")
    return restored


SCENARIO = Scenario(
    "restore", "restore a backup to a point in time: what came later is lost or repeated", 20, execute
)
