"""Checks whether a schema is safe: objects of other roles in it could run with the installer's privileges."""

from dataclasses import dataclass

from lonnymq.errors import SchemaOccupied, SchemaUnsafe
from lonnymq.schema import files
from lonnymq.schema.step import Step, Steps, query, quote_identifier

MAX_NAMED = 5


@dataclass(frozen=True)
class Trust:
    """A schema's owner, this session's role, and what other roles may create or have created in it."""

    owner: str
    owner_is_superuser: bool
    role: str
    role_is_superuser: bool
    creators: tuple[str, ...]
    unsafe_objects: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def is_closed(self) -> bool:
        """Whether only the owner's code can run in this schema."""
        return not self.creators and not self.unsafe_objects

    @property
    def may_be_called(self) -> bool:
        """Whether this role may call the functions and views of this schema to inspect it.

        A superuser must not call those of a lesser role, which can change them at any time. Other roles have
        been granted what they call.
        """
        return self.is_closed and (
            self.role == self.owner or self.owner_is_superuser or not self.role_is_superuser
        )

    @property
    def revoke_list(self) -> str:
        """The roles that may create objects, as REVOKE expects them."""
        return ", ".join(
            name if name == "PUBLIC" else quote_identifier(name) for name in self.creators[:MAX_NAMED]
        )


def assess(schema: str) -> Steps[Trust | None]:
    """Return None if there is no such schema. Only for steps inside `with_safe_search_path`."""
    rows = yield query("schema/trust.sql")
    if not rows:
        return None
    owner, owner_is_superuser, role, role_is_superuser, *lists = rows[0]
    creators, unsafe_objects, objects = map(tuple, lists)
    return Trust(owner, owner_is_superuser, role, role_is_superuser, creators, unsafe_objects, objects)


def require_owner(schema: str, trust: Trust) -> None:
    """Refuse to install into another role's schema: its owner could change anything there at any time.

    A member of the owner's role and a superuser are refused too, because the owner would not own what they
    create.
    """
    if trust.role != trust.owner:
        raise SchemaUnsafe(
            f"schema {schema!r} belongs to role {trust.owner!r}, but this session's role is {trust.role!r}:"
            " only the owner may install or migrate. If you trust the owner, connect as that role, or run"
            f" SET ROLE {quote_identifier(trust.owner)} first; otherwise choose another schema"
        )


def require_closed(schema: str, trust: Trust) -> None:
    """Refuse a schema where other roles may create or have created objects, such as overloads."""
    if trust.creators:
        raise SchemaUnsafe(
            f"other roles may create objects in schema {schema!r}, and these could run with the privileges of"
            f" {trust.owner!r}: run REVOKE CREATE ON SCHEMA {quote_identifier(schema)} FROM"
            f" {trust.revoke_list}, then try again"
        )
    if trust.unsafe_objects:
        raise SchemaUnsafe(
            f"schema {schema!r} contains {list_objects(trust.unsafe_objects)}, which could run with the"
            f" privileges of {trust.owner!r}: drop all triggers and all unknown objects, and make"
            f" {trust.owner!r} the owner of the rest"
        )


def require_empty(schema: str, trust: Trust) -> None:
    """Refuse to create a queue in a schema that contains anything else."""
    if trust.objects:
        raise SchemaOccupied(
            f"schema {schema!r} is not a queue, but contains {list_objects(trust.objects)}: choose another"
            " schema or empty this one"
        )


def guard(schema: str) -> list[Step]:
    """Return these checks as statements, for a script that somebody else runs."""
    name = schema.replace("'", "''")
    text = query("schema/trust.sql").text.rstrip().removesuffix(";")
    file = files.read("schema/guard.sql")
    return [
        Step(f"set local search_path to pg_catalog, pg_temp;\nset local lonnymq.schema = '{name}';"),
        Step(file.text.replace("{trust}", text), origin=file.path),
    ]


def list_objects(objects: tuple[str, ...]) -> str:
    more = len(objects) - MAX_NAMED
    return ", ".join(objects[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
