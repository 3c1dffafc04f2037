"""The versions of Python: `python3.X` of this machine, or built from the pinned source of a release."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.matrix.downloads import CACHE, Download, NotAvailable, fetch, from_url, unpack

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "tools" / "locks"
RUNNING = "{}.{}".format(*sys.version_info)
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PINS = {
    "3.12": ("3.12.3", "sha256-Vr/vH9/BIhzmcg5DpmHj60F4XdkUzplpjYx4lq9L2qE="),
    "3.13": ("3.13.5", "sha256-k+WD8kNFTm6eRYjKLCZiIGrZYWWYYyd6/NuWgBZH1kA="),
    "3.14": ("3.14.4", "sha256-2SPFEwPjjiSRNvwb3zVo1W7LAyFO/e9IUWF209f6rvg="),
}


def install(version: str) -> Path:
    """Return a Python of this version that has the package and what its tests need."""
    if version == RUNNING:
        return Path(sys.executable)
    environment = CACHE / f"environment-{version}"
    python = environment / "bin" / "python"
    lock = LOCKS / "test.txt"
    # A copy of the lock shows what is installed.
    installed = environment / lock.name
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    _run(f"virtual environment with Python {version}", [interpreter(version), "-m", "venv", environment])
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for name in ("build.txt", lock.name):
        wheels: list[str | Path] = ["--require-hashes", "--only-binary", ":all:", "-r", LOCKS / name]
        _run(f"packages of {name} for Python {version}", [*pip, *wheels])
    _run("package", [*pip, "--no-build-isolation", "--no-deps", "-e", ROOT])
    shutil.copy(lock, installed)
    return python


def interpreter(version: str) -> Path:
    found = shutil.which(f"python{version}")
    if found and not subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True).returncode:
        return Path(found)
    if version not in PINS:
        raise NotAvailable(f"there is no python{version} in PATH, and none is pinned")
    return _build(version, *PINS[version])


def version_of(python: Path) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _build(version: str, release: str, integrity: str) -> Path:
    directory = CACHE / f"python-{release}"
    python = directory / "bin" / f"python{version}"
    if python.exists():
        return python
    name = f"Python-{release}.tar.xz"
    url = f"https://www.python.org/ftp/python/{release}/{name}"
    source = Download(name, lambda: from_url(url), integrity)
    build = CACHE / "build"
    unpack(fetch(source), build)
    tree = build / f"Python-{release}"
    what = f"build of Python {release}"
    _run(what, ["./configure", "-q", f"--prefix={directory}", "--disable-test-modules"], tree)
    _run(what, ["make", "-s", f"-j{os.cpu_count()}"], tree)
    _run(what, ["make", "-s", "altinstall"], tree)
    shutil.rmtree(tree)
    return python


def _run(what: str, command: list[str | Path], directory: Path = ROOT) -> None:
    print(f"{what} ...", flush=True)
    try:
        result = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    except OSError as error:
        raise NotAvailable(f"{what} failed: {error}") from None
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise NotAvailable(f"{what} failed: {lines[-1] if lines else f'exit code {result.returncode}'}")
