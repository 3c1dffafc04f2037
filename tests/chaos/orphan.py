"""Ends a process whose harness was killed: nothing may be left behind, not even then."""

import os
import sys
import threading


def end_with_parent() -> None:
    """Watch standard input, a pipe that the harness holds and never writes to."""

    def watch() -> None:
        # Not through sys.stdin, whose lock would be held at exit.
        while os.read(0, 1024):
            pass
        os._exit(1)

    if not sys.stdin.isatty():
        threading.Thread(target=watch, daemon=True).start()
