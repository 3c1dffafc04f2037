"""grant, revoke: which roles may use the queue."""

from typing import Annotated

import typer

from lonnymq import RoleKind
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.cli.output import print_text


def _complete_kind(incomplete: str) -> list[str]:
    return [kind.value for kind in RoleKind if kind.startswith(incomplete)]


Role = Annotated[str, typer.Argument(help="An existing PostgreSQL role.")]
# A plain string, which the queue checks: help would break the choices of an Enum inside a word.
Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="producer, worker, operator or reader.",
        autocompletion=_complete_kind,
    ),
]


def grant(
    role: Role,
    kind: Kind,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Allow a role to use the queue as producer, worker, operator or reader (owner only)."""
    with open_queue(dsn, schema) as queue:
        queue.grant(role, kind)
    print_text(f"{role} may use queue {schema!r} as {kind}")


def revoke(role: Role, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Take back everything that grant gave to a role (owner only)."""
    with open_queue(dsn, schema) as queue:
        queue.revoke(role)
    print_text(f"{role} may no longer use queue {schema!r}")
