"""Install and upgrade the queue in migrations of Alembic.

from lonnymq import alembic as lonnymq_alembic

def upgrade() -> None:
    lonnymq_alembic.install(op)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lonnymq.client.sync import Queue
from lonnymq.schema import sql_text

if TYPE_CHECKING:
    from alembic.operations import Operations

# What Alembic's `include_name` gets: a name, its kind, and the names of its parents.
NameFilter = Callable[[str | None, str, Any], bool]


def install(op: "Operations", *, schema: str = "lonnymq", offline_from: int | None = None) -> None:
    """Install the queue, or bring it up to date, in the transaction of the migration.

    With `alembic upgrade --sql` it prints the script instead. No database is asked then, so pass
    `offline_from`, the installed version of the schema, if the queue exists already.
    """
    context = op.get_context()
    with Queue(schema=schema) as queue:
        if context.as_sql:
            context.impl.static_output(sql_text(queue.schema, offline_from, within_transaction=True))
        else:
            queue.install(connection=op.get_bind())


def uninstall(op: "Operations", *, schema: str = "lonnymq") -> None:
    """Drop the queue with all its messages, in the transaction of the migration."""
    with Queue(schema=schema) as queue:
        if op.get_context().as_sql:
            op.execute(f"drop schema {_quoted(schema)} cascade")
        else:
            queue.uninstall(connection=op.get_bind())


def ignore_schema(schema: str = "lonnymq", *, otherwise: NameFilter | None = None) -> NameFilter:
    """Return an `include_name` for `context.configure()` that hides the queue from autogenerate.

    Alembic looks at other schemas only with `include_schemas=True`. `otherwise` decides about all
    other names.
    """

    def include_name(name: str | None, kind: str, parents: Any) -> bool:
        if kind == "schema" and name == schema:
            return False
        return otherwise is None or otherwise(name, kind, parents)

    return include_name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
