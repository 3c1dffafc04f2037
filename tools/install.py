"""Installs what a lock lists, with several processes of pip at a time, because each uses only one core.

    .venv/bin/python tools/install.py tools/locks/dev.txt [options of pip install]

A lock lists all that is needed, so the parts are installed without looking for dependencies.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Takes longest, because it is built from source.
FIRST = "pyspark"
PARTS = 3


def main(lock: str, *options: str) -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count() or 1) as pool:

        def install(number: int, part: list[str]) -> subprocess.CompletedProcess[str]:
            path = Path(folder, f"{number}.txt")
            path.write_text("".join(part), encoding="utf-8")
            command = [sys.executable, "-m", "pip", "install", "--no-deps", *options, "-r", str(path)]
            return subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )

        parts = split(Path(lock).read_text(encoding="utf-8"))
        ended = list(pool.map(install, range(len(parts)), parts))
    print("".join(one.stdout for one in ended), end="")
    return max(one.returncode for one in ended)


def split(lock: str) -> list[list[str]]:
    """Return the requirements of a lock in parts, of which the first takes longest."""
    _, *requirements = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)
    slow = [one for one in requirements if one.startswith(f"{FIRST}==")]
    others = [one for one in requirements if one not in slow]
    return [part for part in (slow, *(others[n::PARTS] for n in range(PARTS))) if part]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
