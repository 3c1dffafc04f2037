"""What processes beside the caller's inherit of its environment: nothing that may be a secret."""

import os

# Statements such as COPY FROM PROGRAM see all that a server was started with, and so do its user's programs.
INHERITED: tuple[str, ...] = (
    "PATH",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
)


def environment() -> dict[str, str]:
    """What programs need to run here, and messages in English, because we read some of them."""
    return {**{name: os.environ[name] for name in INHERITED if name in os.environ}, "LC_ALL": "C"}
