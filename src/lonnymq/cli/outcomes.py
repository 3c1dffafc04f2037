"""Report of a command that handles several messages: one outcome each."""

from collections.abc import Mapping
from enum import StrEnum

import typer

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.output import print_json, print_table


def report_outcomes(outcomes: Mapping[str, StrEnum], expected: StrEnum, as_json: bool) -> None:
    """Print the outcomes, and exit with a code for the worst of them."""
    if as_json:
        print_json(outcomes)
    else:
        print_table(
            ("message", "outcome"),
            [(name, str(outcome)) for name, outcome in outcomes.items()],
            empty="no messages",
        )
    if "busy" in outcomes.values():
        raise typer.Exit(CommandExit.BUSY)
    if any(outcome is not expected for outcome in outcomes.values()):
        raise typer.Exit(CommandExit.NO)
