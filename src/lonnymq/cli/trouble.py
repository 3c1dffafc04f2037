"""Failures as a sentence, what to do about it, and an exit code: no traceback reaches the user."""

import os
from dataclasses import dataclass
from typing import Any

import psycopg
import typer

from lonnymq import errors
from lonnymq.cli.exits import Exit
from lonnymq.cli.show import warn
from lonnymq.cli.usage import Commands
from lonnymq.embedded import EmbeddedError
from lonnymq.texts import visible

DEBUG = "LONNYMQ_DEBUG"


@dataclass(frozen=True)
class Remedy:
    """What a failure means to the shell, and what its reader can do."""

    code: Exit
    advice: str


# The first that fits; the special before the general.
REMEDIES: tuple[tuple[type[BaseException], Remedy], ...] = (
    # Its text says what to check.
    (errors.LoginRefused, Remedy(Exit.UNREACHABLE, "")),
    (
        errors.ConnectionLost,
        Remedy(
            Exit.UNREACHABLE,
            "is the server up, and is --dsn (or LONNYMQ_DSN, or the PG* environment variables) right?\n"
            "if you have none: `lonnymq up` starts one",
        ),
    ),
    (errors.SchemaMissing, Remedy(Exit.SCHEMA, "--schema or LONNYMQ_SCHEMA names another queue")),
    (errors.SchemaTooOld, Remedy(Exit.SCHEMA, "`lonnymq migrate` brings it up to date; messages stay")),
    (errors.SchemaTooNew, Remedy(Exit.SCHEMA, "install a newer release of lonnymq here")),
    (errors.SchemaOccupied, Remedy(Exit.SCHEMA, "choose another schema with --schema")),
    (
        errors.SchemaUnsafe,
        Remedy(
            Exit.SCHEMA,
            "`lonnymq doctor` shows who owns the schema, and what others can do there\n"
            "PGOPTIONS='-c role=OWNER' in front of the command runs it as that role",
        ),
    ),
    (errors.ServerTooOld, Remedy(Exit.SCHEMA, "upgrade PostgreSQL to 14 or newer")),
    (
        errors.NotPermitted,
        Remedy(
            Exit.NOT_PERMITTED,
            "the queue's owner can let a role in: `lonnymq grant ROLE KIND`, as producer, worker, …\n"
            "`lonnymq doctor` says what this role may do",
        ),
    ),
    (errors.Busy, Remedy(Exit.BUSY, "try again; `lonnymq doctor` shows transactions that stay open")),
    (errors.WrongIsolationLevel, Remedy(Exit.DATABASE, "the role's default must be read committed")),
    (
        errors.ReadOnlyTransaction,
        Remedy(Exit.DATABASE, "a standby, or default_transaction_read_only is on: see `lonnymq doctor`"),
    ),
    (errors.PublicationIncomplete, Remedy(Exit.DATABASE, "load it again")),
    (errors.InvalidArgument, Remedy(Exit.USAGE, "")),
    (errors.DecodeError, Remedy(Exit.USAGE, "")),
    (errors.LonnyError, Remedy(Exit.NO, "")),
    (EmbeddedError, Remedy(Exit.UNREACHABLE, "")),
    (psycopg.Error, Remedy(Exit.DATABASE, "")),
    (OSError, Remedy(Exit.USAGE, "")),
)
BUG = Remedy(Exit.INTERNAL, f"this is a bug; {DEBUG}=1 shows where, and please report it")


class Group(Commands):
    """The root of all commands: whatever one of them raises ends here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if isinstance(getattr(error, "message", None), str):
                error.message = visible(error.message)
            raise
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            remedy = remedy_for(error)
            warn(described(error), *getattr(error, "__notes__", ()), *remedy.advice.splitlines())
            raise typer.Exit(remedy.code) from error


def remedy_for(error: BaseException) -> Remedy:
    return next((remedy for kind, remedy in REMEDIES if isinstance(error, kind)), BUG)


def described(error: BaseException) -> str:
    """Return what happened, in one line."""
    if isinstance(error, psycopg.Error):
        return f"the database refused: {error.diag.message_primary or _first_line(error)}"
    if isinstance(error, errors.LoginRefused):
        return str(error)
    if isinstance(error, errors.ConnectionLost) and not error.may_have_happened:
        return f"no connection to the database: {_first_line(error.__cause__ or error)}"
    if isinstance(error, errors.SchemaTooOld):
        return "the queue is of an older release than this command"
    if isinstance(error, errors.ConnectionLost):
        return " ".join(str(error).split())
    if isinstance(error, (errors.LonnyError, EmbeddedError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
