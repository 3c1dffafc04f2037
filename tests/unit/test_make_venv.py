"""`make venv`, with small packages instead of those in the locks."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.unit import small_backend

ROOT = Path(__file__).resolve().parents[2]
# The second requirement does not exist, so installing more than what is locked fails.
BUILD_SYSTEM = '[build-system]\nrequires = ["small_backend", "unlocked"]\nbuild-backend = "small_backend"\n'


def _write_project(folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(f'{BUILD_SYSTEM}[project]\nname = "{name}"\nversion = "1.0"\n')


def _pin(file: Path) -> str:
    return f"{file.name.split('-')[0]}==1.0 --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


def _make_venv(checkout: Path, index: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE"))}
    pip = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_NO_CACHE_DIR": "1",
    }
    return subprocess.run(
        ["make", "venv", f"PYTHON={sys.executable}"],
        cwd=checkout,
        env=environment | pip,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_make_venv_installs_only_locked_files(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    backend = index / small_backend.write_wheel(
        str(index), "small_backend", Path(small_backend.__file__).read_text(encoding="utf-8")
    )
    # The only package that may be built from source.
    spark = index / "pyspark-1.0.tar.gz"
    _write_project(tmp_path / "pyspark-1.0", "pyspark")
    with tarfile.open(spark, "w:gz") as archive:
        archive.add(tmp_path / "pyspark-1.0", "pyspark-1.0")

    checkout = tmp_path / "check out"
    _write_project(checkout, "project")
    shutil.copy(ROOT / "Makefile", checkout)
    locks = checkout / "tools" / "locks"
    locks.mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "install.py", checkout / "tools")
    (locks / "build.txt").write_text(_pin(backend))
    (locks / "dev.txt").write_text(_pin(spark))

    for file in (backend, spark):
        locked = file.read_bytes()
        file.write_bytes(locked + b"\n")
        refused = _make_venv(checkout, index)
        assert refused.returncode, refused.stdout
        assert "DO NOT MATCH THE HASHES" in refused.stdout
        assert file.name in refused.stdout
        file.write_bytes(locked)

    accepted = _make_venv(checkout, index)
    assert accepted.returncode == 0, accepted.stdout
    packages = next((checkout / ".venv" / "lib").glob("python*/site-packages"))
    assert {f"{name}.py" for name in ("small_backend", "pyspark", "project")} <= {
        path.name for path in packages.iterdir()
    }
