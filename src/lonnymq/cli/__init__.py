"""The command line: one file per command, `app.py` is their table of contents."""

import io
import sys
from collections.abc import Sequence

from lonnymq.errors import install_advice


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command as the shell does, and return its exit code."""
    try:
        from lonnymq.cli.app import app
    except KeyboardInterrupt:
        return 130
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        print(f"lonnymq: the command line needs {error.name}: {install_advice('cli')}", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a terminal of another encoding cannot show is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(None if arguments is None else list(arguments), prog_name="lonnymq")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
