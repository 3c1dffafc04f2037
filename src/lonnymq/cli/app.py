"""The table of contents: which commands there are."""

from typing import Annotated

import typer

import lonnymq
from lonnymq.cli import (
    channel,
    channels,
    check,
    cron,
    dead,
    enqueue,
    grant,
    history,
    install,
    load,
    message,
    peek,
    pipeline,
    sql,
    status,
    top,
    up,
    work,
)
from lonnymq.cli.doctor.command import doctor
from lonnymq.cli.trouble import Group
from lonnymq.cli.usage import Commands

SET_UP = "Set up"
LOOK = "Look"
MESSAGES = "Messages"
STEER = "Steer"
RUN = "Run"

app = typer.Typer(
    cls=Group,
    help="LonnyMQ: a multi-tenant message queue that lives in the PostgreSQL you already run.",
    epilog="The database comes from --dsn, LONNYMQ_DSN or libpq's environment; the queue from --schema or"
    " LONNYMQ_SCHEMA. Exit codes: 0 done, 1 the answer is no, 2 usage, 3 unreachable, 4 schema, 5 not"
    " permitted, 6 busy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lonnymq {lonnymq.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("up", rich_help_panel=SET_UP)(up.up)
app.command("install", rich_help_panel=SET_UP)(install.install)
app.command("migrate", rich_help_panel=SET_UP)(install.migrate)
app.command("sql", rich_help_panel=SET_UP)(sql.sql)
app.command("grant", rich_help_panel=SET_UP)(grant.grant)
app.command("revoke", rich_help_panel=SET_UP)(grant.revoke)

app.command("doctor", rich_help_panel=LOOK)(doctor)
app.command("status", rich_help_panel=LOOK)(status.status)
app.command("top", rich_help_panel=LOOK)(top.top)
app.command("channels", rich_help_panel=LOOK)(channels.channels)
app.command("peek", rich_help_panel=LOOK)(peek.peek)
app.command("check", rich_help_panel=LOOK)(check.check)

app.command("enqueue", rich_help_panel=MESSAGES)(enqueue.enqueue)
app.command("load", rich_help_panel=MESSAGES)(load.load)
app.add_typer(message.app, name="message", cls=Commands, rich_help_panel=MESSAGES)
app.add_typer(dead.app, name="dead", cls=Commands, rich_help_panel=MESSAGES)

app.add_typer(channel.app, name="channel", cls=Commands, rich_help_panel=STEER)
app.add_typer(cron.app, name="cron", cls=Commands, rich_help_panel=STEER)
app.add_typer(history.app, name="history", cls=Commands, rich_help_panel=STEER)
app.command("repair", rich_help_panel=STEER)(check.repair)

app.command("work", rich_help_panel=RUN)(work.work)
app.add_typer(pipeline.app, name="pipeline", cls=Commands, rich_help_panel=RUN)
