"""The image is built and started, where buildah and a base image are there."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).resolve().parents[2]
# A local image with Python: the test does not download one.
BASE = os.environ.get("LONNYMQ_TEST_BASE_IMAGE")
ENVIRONMENT = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


def buildah(*arguments: str) -> str:
    done = subprocess.run(
        ["buildah", *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    if shutil.which("buildah") is None or BASE is None:
        pytest.skip("needs buildah, and LONNYMQ_TEST_BASE_IMAGE")
    # pip finds its index, and trusts it, as on this machine.
    shared = [path for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    volumes = [option for path in shared for option in ("--volume", f"{path}:{path}:ro")]
    image = buildah(
        "build", "-q", *volumes, "--build-arg", f"PYTHON={BASE}", "-f", "deploy/Containerfile", "."
    )
    name = buildah("from", image)
    yield name
    buildah("rm", name)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_image_runs_the_command_without_root(container: str, dsn: str) -> None:
    assert buildah("run", container, "--", "lonnymq", "--version").startswith("lonnymq ")
    assert buildah("run", container, "--", "id", "-u") == "10001"
    config = buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.User}}", container)
    assert config == "[lonnymq] 10001:10001"
    # Through the socket of the test's server.
    folder = str(conninfo_to_dict(dsn)["host"])
    Path(folder).chmod(0o711)
    shared = ("--volume", f"{folder}:{folder}")
    run = ("run", *shared, "--env", f"LONNYMQ_DSN={dsn}", container, "--")
    buildah(*run, "lonnymq", "enqueue", "acme", '{"video": 7}')
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (1,)
