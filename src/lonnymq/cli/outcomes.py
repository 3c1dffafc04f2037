"""What became of each of many things that a command was given."""

from collections.abc import Mapping
from enum import StrEnum

import typer

from lonnymq.cli.exits import Exit
from lonnymq.cli.show import emit, show_table


def report(outcomes: Mapping[str, StrEnum], wanted: StrEnum, as_json: bool) -> None:
    """Print an outcome each, and end with the exit code of the worst."""
    if as_json:
        emit(outcomes)
    else:
        show_table(
            ("what", "outcome"), [(what, str(outcome)) for what, outcome in outcomes.items()], empty="nothing"
        )
    if "busy" in outcomes.values():
        raise typer.Exit(Exit.BUSY)
    if any(outcome is not wanted for outcome in outcomes.values()):
        raise typer.Exit(Exit.NO)
