"""The command line: one file per command; `app.py` lists them."""

import io
import sys
from collections.abc import Sequence

from lonnymq.errors import install_advice


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command as a shell would, and return its exit code."""
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
            # A character that the terminal's encoding lacks must not make a command fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(None if arguments is None else list(arguments), prog_name="lonnymq")
    except SystemExit as system_exit:
        return system_exit.code if isinstance(system_exit.code, int) else 0
    return 0
