"""Whether a schema can be trusted: what others put there would run with the rights of whoever installs."""

from dataclasses import dataclass

from lonnymq.errors import SchemaOccupied, SchemaUnsafe
from lonnymq.schema import files
from lonnymq.schema.step import Step, Steps, question, quoted

MOST_NAMED = 5


@dataclass(frozen=True)
class Trust:
    """A schema's owner, this session's role, and what others can do in the schema, or have left there."""

    owner: str
    owner_is_superuser: bool
    role: str
    role_is_superuser: bool
    creators: tuple[str, ...]
    strangers: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def is_closed(self) -> bool:
        """Whether what is called in this schema is the owner's."""
        return not self.creators and not self.strangers

    @property
    def may_be_called(self) -> bool:
        """Whether this role may run what is there to look at it: not a superuser what a lesser role has made.

        That role can change it whenever it likes. Others have been granted what they call.
        """
        return self.is_closed and (
            self.role == self.owner or self.owner_is_superuser or not self.role_is_superuser
        )

    @property
    def revoking(self) -> str:
        """The roles that may create, as REVOKE takes them."""
        return ", ".join(name if name == "PUBLIC" else quoted(name) for name in self.creators[:MOST_NAMED])


def look(schema: str) -> Steps[Trust | None]:
    """Ask; None: there is no such schema. For secluded steps."""
    rows = yield question("schema/trust.sql")
    if not rows:
        return None
    owner, owner_is_superuser, role, role_is_superuser, *lists = rows[0]
    creators, strangers, objects = map(tuple, lists)
    return Trust(owner, owner_is_superuser, role, role_is_superuser, creators, strangers, objects)


def require_owner(schema: str, trust: Trust) -> None:
    """Refuse to work in another role's schema: it may change there what it likes, whenever it likes.

    Also if this role is a member of that one, or a superuser: what it creates would not be the owner's.
    """
    if trust.role != trust.owner:
        raise SchemaUnsafe(
            f"schema {schema!r} belongs to role {trust.owner!r}, and this session's role is {trust.role!r}:"
            " only the owner may install or migrate. If you trust the owner, connect as it, or run"
            f" SET ROLE {quoted(trust.owner)} first; otherwise choose another schema"
        )


def require_closed(schema: str, trust: Trust) -> None:
    """Refuse a schema where others may create, or have created: a better-fitting overload would be called."""
    if trust.creators:
        raise SchemaUnsafe(
            f"others may create in schema {schema!r}, and what they create could run with the rights of"
            f" {trust.owner!r}: REVOKE CREATE ON SCHEMA {quoted(schema)} FROM {trust.revoking},"
            " then try again"
        )
    if trust.strangers:
        raise SchemaUnsafe(
            f"schema {schema!r} holds {named(trust.strangers)}, which could run with the rights of"
            f" {trust.owner!r}: drop what you do not know and all triggers, and make {trust.owner!r} the"
            " owner of the rest"
        )


def require_empty(schema: str, trust: Trust) -> None:
    """Refuse to make a queue beside anything else."""
    if trust.objects:
        raise SchemaOccupied(
            f"schema {schema!r} is no queue, but holds {named(trust.objects)}: choose another, or empty it"
        )


def guard(schema: str) -> list[Step]:
    """Return the same as statements, for those who run a script."""
    name = schema.replace("'", "''")
    query = question("schema/trust.sql").text.rstrip().removesuffix(";")
    file = files.read("schema/guard.sql")
    return [
        Step(f"set local search_path to pg_catalog, pg_temp;\nset local lonnymq.examined = '{name}';"),
        Step(file.text.replace("{trust}", query), origin=file.path),
    ]


def named(objects: tuple[str, ...]) -> str:
    more = len(objects) - MOST_NAMED
    return ", ".join(objects[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
