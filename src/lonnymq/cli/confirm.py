"""Confirmation of commands that cannot be undone."""

import sys

import typer

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.output import print_error
from lonnymq.texts import escape_hidden


def require_confirmation(question: str, *, is_confirmed: bool) -> None:
    """Ask for confirmation unless it was given by --yes; end of input counts as no."""
    if is_confirmed:
        return
    print(f"{escape_hidden(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except ValueError:
        # The input is not text, or stdin is closed.
        answer = ""
    if not answer:
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        print_error("not confirmed, nothing was changed", "pass --yes to skip the question")
        raise typer.Exit(CommandExit.NO)
