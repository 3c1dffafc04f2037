"""check, repair: find broken invariants of the queue, and fix them."""

from collections.abc import Sequence

import typer

from lonnymq import Problem
from lonnymq.cli.acting import act
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.output import print_json, print_table, print_text


def check(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Compare turns, leases, wakes and messages, and report every broken invariant.

    Reads the whole queue, so do not run it every minute. The exit code is 1 if something is wrong; `lonnymq
    repair` fixes it.
    """
    with open_queue(dsn, schema) as queue:
        problems = queue.check()
    _show(problems, as_json)
    if problems:
        raise typer.Exit(CommandExit.NO)


def repair(yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Recount every channel from its rows, and let dequeue look at each channel again.

    Workers may keep running. Channels that they hold at that moment are reported and left alone; then the
    exit code is 1: run it again.
    """
    require_confirmation("Recount all channels of this queue?", is_confirmed=yes)
    with act(dsn, schema, "queue_check", None, {"repair": True}) as acting:
        problems = acting.queue.check(repair=True, connection=acting.connection)
        acting.outcomes += [_result(one) for one in problems]
    remaining = []
    if problems:
        with open_queue(dsn, schema) as queue:
            remaining = queue.check()
    _show(problems, as_json)
    if remaining:
        raise typer.Exit(CommandExit.NO)


def _show(problems: Sequence[Problem], as_json: bool) -> None:
    if as_json:
        print_json(problems)
    elif not problems:
        print_text("no problems found")
    else:
        rows = [(one.problem, one.channel, one.detail, _result(one)) for one in problems]
        print_table(("problem", "channel", "detail", "result"), rows, empty="")


def _result(problem: Problem) -> str:
    return "repaired" if problem.is_repaired else "not repaired"
