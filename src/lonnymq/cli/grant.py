"""grant, revoke: which roles may use the queue, and as a tenant, which channels of it."""

from typing import Annotated

import typer

from lonnymq import RoleKind
from lonnymq.cli.acting import act, first_names
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
        help="producer, worker, operator, reader or tenant.",
        autocompletion=_complete_kind,
    ),
]


Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", help="A channel of the tenant; repeat the option for more."),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        help="All channels that begin with this are the tenant's. It must end with punctuation, such as /."
    ),
]
MaxChannels = Annotated[
    int | None, typer.Option(min=1, help="How many channels with the prefix the tenant can use. Default: 10.")
]


def grant(
    role: Role,
    kind: Kind,
    channels: Channels = None,
    prefix: Prefix = None,
    max_channels: MaxChannels = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Allow a role to use the queue as producer, worker, operator, reader or tenant (owner only)."""
    arguments = {"channels": first_names(channels or []), "prefix": prefix, "max_channels": max_channels}
    given = {"kind": kind} | {name: value for name, value in arguments.items() if value}
    with act(dsn, schema, "queue_grant", role, given) as acting:
        acting.queue.grant(
            role,
            kind,
            channels=channels or None,
            prefix=prefix,
            max_channels=max_channels,
            connection=acting.connection,
        )
    print_text(f"{role} may use queue {schema!r} as {kind}")


def revoke(role: Role, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Take back everything that grant gave to a role (owner only)."""
    with act(dsn, schema, "queue_revoke", role) as acting:
        acting.queue.revoke(role, connection=acting.connection)
    print_text(f"{role} may no longer use queue {schema!r}")
