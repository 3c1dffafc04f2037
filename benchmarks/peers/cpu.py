"""CPU time of processes that belong together."""

import os
from pathlib import Path

PROC = Path("/proc")


def of_group(group: int) -> float:
    """Return the CPU seconds of a process group until now, those of its ended children included."""
    return sum(spent_s for number, spent_s in _processes() if number == group)


def _processes() -> list[tuple[int, float]]:
    found = []
    tick = os.sysconf("SC_CLK_TCK")
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            # The name, in parentheses, may hold anything; the state follows it.
            fields = text.rpartition(")")[2].split()
            found.append((int(fields[2]), sum(map(int, fields[11:15])) / tick))
    return found
