"""All commands, by the panels in which `lonnymq --help` shows them."""

from typing import Annotated

import typer

import lonnymq
from lonnymq.cli import (
    audit,
    channel,
    channels,
    check,
    cron,
    dead,
    enqueue,
    exporter,
    grant,
    health,
    history,
    install,
    load,
    message,
    peek,
    pipeline,
    serve,
    sql,
    status,
    top,
    up,
    work,
    workers,
)
from lonnymq.cli.command_group import CommandGroup
from lonnymq.cli.doctor import doctor
from lonnymq.cli.errors import RootGroup

SET_UP = "Set up"
INSPECT = "Inspect"
MESSAGES = "Messages"
MANAGE = "Manage"
RUN = "Run"

app = typer.Typer(
    cls=RootGroup,
    help="LonnyMQ: a multi-tenant message queue inside the PostgreSQL you already run.",
    epilog="The database is chosen by --dsn, LONNYMQ_DSN or the PG* environment variables, the queue by"
    " --schema or LONNYMQ_SCHEMA. Exit codes: 0 success, 1 the answer is no (not found, not healthy), 2 wrong"
    " usage, 3 server unreachable, 4 schema missing, too old or too new, 5 not permitted, 6 locked by another"
    " transaction.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"lonnymq {lonnymq.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("up", rich_help_panel=SET_UP)(up.up)
app.command("install", rich_help_panel=SET_UP)(install.install)
app.command("migrate", rich_help_panel=SET_UP)(install.migrate)
app.command("sql", rich_help_panel=SET_UP)(sql.sql)
app.command("grant", rich_help_panel=SET_UP)(grant.grant)
app.command("revoke", rich_help_panel=SET_UP)(grant.revoke)

app.command("doctor", rich_help_panel=INSPECT)(doctor)
app.command("status", rich_help_panel=INSPECT)(status.status)
app.command("top", rich_help_panel=INSPECT)(top.top)
app.command("channels", rich_help_panel=INSPECT)(channels.channels)
app.add_typer(workers.app, name="workers", cls=CommandGroup, rich_help_panel=INSPECT)
app.command("health", rich_help_panel=INSPECT)(health.health)
app.command("peek", rich_help_panel=INSPECT)(peek.peek)
app.command("check", rich_help_panel=INSPECT)(check.check)
app.command("audit", rich_help_panel=INSPECT)(audit.audit)

app.command("enqueue", rich_help_panel=MESSAGES)(enqueue.enqueue)
app.command("load", rich_help_panel=MESSAGES)(load.load)
app.add_typer(message.app, name="message", cls=CommandGroup, rich_help_panel=MESSAGES)
app.add_typer(dead.app, name="dead", cls=CommandGroup, rich_help_panel=MESSAGES)

app.add_typer(channel.app, name="channel", cls=CommandGroup, rich_help_panel=MANAGE)
app.add_typer(cron.app, name="cron", cls=CommandGroup, rich_help_panel=MANAGE)
app.add_typer(history.app, name="history", cls=CommandGroup, rich_help_panel=MANAGE)
app.command("repair", rich_help_panel=MANAGE)(check.repair)

app.command("work", rich_help_panel=RUN)(work.work)
app.command("exporter", rich_help_panel=RUN)(exporter.exporter)
app.command("serve", rich_help_panel=RUN)(serve.serve)
app.add_typer(pipeline.app, name="pipeline", cls=CommandGroup, rich_help_panel=RUN)
