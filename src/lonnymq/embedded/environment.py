"""The environment of the processes that we start: they inherit nothing that may be a secret."""

import os

# Statements such as COPY FROM PROGRAM can read the server's environment, and so can programs of its user.
INHERITED: tuple[str, ...] = (
    "PATH",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
)


def environment() -> dict[str, str]:
    """Return what programs need to run, and a locale with English messages, because we parse some of them."""
    return {**{name: os.environ[name] for name in INHERITED if name in os.environ}, "LC_ALL": "C"}
