"""Errors as users see them: a sentence, what to do about it, and an exit code, but no traceback."""

import os
from dataclasses import dataclass
from typing import Any

import psycopg
import typer

from lonnymq import errors
from lonnymq.cli.command_group import CommandGroup
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.output import print_error
from lonnymq.embedded import EmbeddedError
from lonnymq.texts import escape_hidden

DEBUG = "LONNYMQ_DEBUG"


@dataclass(frozen=True)
class Remedy:
    """The exit code of an error, and what the user can do."""

    code: CommandExit
    advice: str


# The first match applies, so subclasses come before their base classes.
REMEDIES: tuple[tuple[type[BaseException], Remedy], ...] = (
    # Its message says what to check.
    (errors.LoginRefused, Remedy(CommandExit.UNREACHABLE, "")),
    (
        errors.ConnectionLost,
        Remedy(
            CommandExit.UNREACHABLE,
            "check that the server is up, and check --dsn, LONNYMQ_DSN or the PG* environment variables\n"
            "if you have no server: `lonnymq up` starts one",
        ),
    ),
    (
        errors.SchemaMissing,
        Remedy(CommandExit.SCHEMA, "to use a queue in another schema: --schema or LONNYMQ_SCHEMA"),
    ),
    (errors.SchemaTooOld, Remedy(CommandExit.SCHEMA, "`lonnymq migrate` upgrades it; messages stay")),
    (errors.SchemaTooNew, Remedy(CommandExit.SCHEMA, "install a newer release of lonnymq on this machine")),
    (errors.SchemaOccupied, Remedy(CommandExit.SCHEMA, "choose another schema with --schema")),
    (
        errors.SchemaUnsafe,
        Remedy(
            CommandExit.SCHEMA,
            "`lonnymq doctor` shows who owns the schema, and what other roles can do there\n"
            "to run the command as the owner, put PGOPTIONS='-c role=OWNER' in front of it",
        ),
    ),
    (errors.ServerTooOld, Remedy(CommandExit.SCHEMA, "upgrade PostgreSQL to 14 or newer")),
    (
        errors.NotPermitted,
        Remedy(
            CommandExit.NOT_PERMITTED,
            "the queue's owner can grant access: lonnymq grant ROLE producer|worker|operator|reader\n"
            "`lonnymq doctor` shows what this role may do",
        ),
    ),
    (errors.Busy, Remedy(CommandExit.BUSY, "try again; `lonnymq doctor` shows long-open transactions")),
    (
        errors.WrongIsolationLevel,
        Remedy(CommandExit.DATABASE, "set the role's default_transaction_isolation to read committed"),
    ),
    (
        errors.ReadOnlyTransaction,
        Remedy(
            CommandExit.DATABASE,
            "the server is a standby, or default_transaction_read_only is on: see `lonnymq doctor`",
        ),
    ),
    (errors.PublicationIncomplete, Remedy(CommandExit.DATABASE, "repeat the load")),
    (errors.InvalidArgument, Remedy(CommandExit.USAGE, "")),
    (errors.DecodeError, Remedy(CommandExit.USAGE, "")),
    (errors.LonnyError, Remedy(CommandExit.NO, "")),
    (EmbeddedError, Remedy(CommandExit.UNREACHABLE, "")),
    (psycopg.Error, Remedy(CommandExit.DATABASE, "")),
    (OSError, Remedy(CommandExit.USAGE, "")),
)
BUG = Remedy(
    CommandExit.INTERNAL, f"this is a bug in LonnyMQ, please report it; {DEBUG}=1 shows the traceback"
)


class RootGroup(CommandGroup):
    """The root of all commands, which reports whatever a command raises."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if isinstance(getattr(error, "message", None), str):
                error.message = escape_hidden(error.message)
            raise
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            remedy = find_remedy(error)
            print_error(describe(error), *getattr(error, "__notes__", ()), *remedy.advice.splitlines())
            raise typer.Exit(remedy.code) from error


def find_remedy(error: BaseException) -> Remedy:
    return next((remedy for kind, remedy in REMEDIES if isinstance(error, kind)), BUG)


def describe(error: BaseException) -> str:
    """Return an error's message for users."""
    if isinstance(error, psycopg.Error):
        return f"the database reported an error: {error.diag.message_primary or _first_line(error)}"
    if isinstance(error, errors.LoginRefused):
        return str(error)
    if isinstance(error, errors.ConnectionLost) and not error.may_have_happened:
        return f"no connection to the database: {_first_line(error.__cause__ or error)}"
    if isinstance(error, errors.SchemaTooOld):
        return "the queue's schema is older than this release of lonnymq"
    if isinstance(error, errors.ConnectionLost):
        return " ".join(str(error).split())
    if isinstance(error, (errors.LonnyError, EmbeddedError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
