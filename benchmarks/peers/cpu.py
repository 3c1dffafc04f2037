"""Reads the CPU time of process groups."""

import os
from pathlib import Path

PROC = Path("/proc")


def of_group(group: int) -> float:
    """Return the CPU seconds that a process group has used, including those of ended children."""
    return sum(spent_s for process_group, spent_s in _processes() if process_group == group)


def _processes() -> list[tuple[int, float]]:
    found = []
    tick = os.sysconf("SC_CLK_TCK")
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            # The name, in parentheses, may contain anything; the state follows it.
            fields = text.rpartition(")")[2].split()
            found.append((int(fields[2]), sum(map(int, fields[11:15])) / tick))
    return found
