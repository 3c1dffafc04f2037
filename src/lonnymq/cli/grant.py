"""grant, revoke: who may use the queue."""

from typing import Annotated

import typer

from lonnymq import RoleKind
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.cli.show import say


def _kinds(incomplete: str) -> list[str]:
    return [kind.value for kind in RoleKind if kind.startswith(incomplete)]


Role = Annotated[str, typer.Argument(help="An existing role of PostgreSQL.")]
# A text: help would break the list of an Enum's words in the middle of one. The queue checks it.
Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="producer, worker, operator or reader.",
        autocompletion=_kinds,
    ),
]


def grant(
    role: Role,
    kind: Kind,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Let a role use the queue as a producer, worker, operator or reader; for the owner."""
    with opened(dsn, schema) as queue:
        queue.grant(role, kind)
    say(f"{role} may use queue {schema!r} as {kind}")


def revoke(role: Role, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Take back all that grant gave to a role; for the owner."""
    with opened(dsn, schema) as queue:
        queue.revoke(role)
    say(f"{role} may no longer use queue {schema!r}")
