"""check, repair: compare all that must agree."""

from collections.abc import Sequence

import typer

from lonnymq import Problem
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.show import emit, say, show_table


def check(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Compare turns, leases, wakes and messages; report every broken invariant.

    Reads the whole queue: not for every minute. Ends with 1 if something is wrong; repair mends it.
    """
    with opened(dsn, schema) as queue:
        problems = queue.check()
    _show(problems, as_json)
    if problems:
        raise typer.Exit(Exit.NO)


def repair(yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Recount from the rows themselves, and have every channel looked at again.

    Workers go on; channels that they hold just then are reported and left. Ends with 1 if some were.
    """
    require_yes("Recount all channels of this queue?", is_yes=yes)
    with opened(dsn, schema) as queue:
        problems = queue.check(repair=True)
        left = queue.check() if problems else []
    _show(problems, as_json)
    if left:
        raise typer.Exit(Exit.NO)


def _show(problems: Sequence[Problem], as_json: bool) -> None:
    if as_json:
        emit(problems)
    elif not problems:
        say("all is well")
    else:
        rows = [
            (one.problem, one.channel, one.detail, "repaired" if one.is_repaired else "not repaired")
            for one in problems
        ]
        show_table(("problem", "channel", "detail", ""), rows, empty="")
