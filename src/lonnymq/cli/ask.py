"""Dangerous commands ask first."""

import sys

import typer

from lonnymq.cli.exits import Exit
from lonnymq.cli.show import warn
from lonnymq.texts import visible


def require_yes(question: str, *, is_yes: bool) -> None:
    """Go on only if that was confirmed, beforehand or now; where nobody can answer, the answer is no."""
    if is_yes:
        return
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except ValueError:
        # Not text, or closed.
        answer = ""
    if not answer:
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        warn("not confirmed, nothing was changed", "pass --yes to skip the question")
        raise typer.Exit(Exit.NO)
