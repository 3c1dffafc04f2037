"""Tests the Django application with other versions of Django: make test-django DJANGO_ARGS="--django 6.1.3".

For each version: our own tests of it, and Django's tests of task backends against ours. Django's tests are
downloaded with its sources; everything is kept in .matrix/.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import lonnymq
from tools.matrix import pythons
from tools.matrix.downloads import CACHE, NotAvailable

VERSIONS = ("6.0.10", "6.1.3")
PYTHON = "3.12"
TESTS = tuple(sorted(map(str, (pythons.ROOT / "tests" / "frameworks").glob("test_django*.py"))))


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    codes = []
    for version in options.django:
        try:
            python = install(version, options.python or pythons.interpreter(PYTHON))
            tests = download_tests(version, python)
        except (NotAvailable, subprocess.CalledProcessError) as error:
            print(f"error: Django {version}: {error}", file=sys.stderr)
            codes.append(1)
            continue
        environment = {**os.environ, "PYTHONPATH": f"{pythons.ROOT / 'src'}:{pythons.ROOT}"}
        with lonnymq.embedded() as server:
            program: list[str | Path] = [python, "-m", "tools.django_conformance.program", tests, server.dsn]
            codes.append(subprocess.run(program, cwd=pythons.ROOT, env=environment).returncode)
        if not options.only_theirs:
            ours: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
            codes.append(subprocess.run(ours, cwd=pythons.ROOT, env=environment).returncode)
    return int(any(codes))


def install(version: str, interpreter: Path) -> Path:
    """Return a Python that has this version of Django, and what our tests need."""
    environment = CACHE / f"environment-django-{version}"
    python, stamp = environment / "bin" / "python", environment / "installed"
    lock = (pythons.LOCKS / "test.txt").read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == lock:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    print(f"environment with Django {version} ...", flush=True)
    subprocess.run([interpreter, "-m", "venv", environment], check=True)
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    hashes: list[str | Path] = ["--require-hashes", "--only-binary", ":all:"]
    for name in ("build.txt", "test.txt"):
        subprocess.run([*pip, *hashes, "-r", pythons.LOCKS / name], check=True)
    subprocess.run([*pip, f"django=={version}"], check=True)
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "-e", pythons.ROOT], check=True)
    stamp.write_text(lock, encoding="utf-8")
    return python


def download_tests(version: str, python: Path) -> Path:
    """Return the folder with Django's tests, of which only those of tasks are unpacked."""
    folder = CACHE / f"django-{version}" / "tests"
    if not (folder / "tasks").exists():
        print(f"sources of Django {version} ...", flush=True)
        with tempfile.TemporaryDirectory() as directory:
            download: list[str | Path] = [
                python,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                "django",
            ]
            subprocess.run([*download, f"django=={version}", "-d", directory], check=True)
            (archive,) = Path(directory).iterdir()
            with tarfile.open(archive) as sources:
                wanted = [one for one in sources if one.name.startswith(f"django-{version}/tests/tasks/")]
                sources.extractall(CACHE, wanted, filter="data")
    return folder


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.django_conformance", description=__doc__)
    parser.add_argument(
        "--django", type=lambda text: text.split(","), default=list(VERSIONS), help="versions, such as 6.0.10"
    )
    parser.add_argument("--python", type=Path, help=f"the Python to use (default: python{PYTHON})")
    parser.add_argument("--only-theirs", action="store_true", help="leave out our own tests")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
