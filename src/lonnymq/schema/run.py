"""Runs schema steps on a blocking connection; client/ does the same for asyncio."""

from typing import TYPE_CHECKING, Any, TypeVar

from psycopg.rows import tuple_row

from lonnymq.schema import steps

if TYPE_CHECKING:
    from psycopg import Connection

    from lonnymq.schema.found import SchemaStatus
    from lonnymq.schema.step import Steps

Result = TypeVar("Result")


def install(connection: "Connection[Any]", schema: str = "lonnymq") -> "SchemaStatus":
    """Make the queue, or bring it up to date; safe when several processes do it at once."""
    return run(connection, steps.install(schema))


def migrate(connection: "Connection[Any]", schema: str = "lonnymq") -> "SchemaStatus":
    """Bring an installed queue up to date."""
    return run(connection, steps.migrate(schema))


def check(connection: "Connection[Any]", schema: str = "lonnymq") -> "SchemaStatus":
    """Say what is installed."""
    return run(connection, steps.check(schema))


def uninstall(connection: "Connection[Any]", schema: str = "lonnymq") -> None:
    """Drop the queue with all its messages."""
    run(connection, steps.uninstall(schema))


def run(connection: "Connection[Any]", script: "Steps[Result]") -> Result:
    """All steps in one transaction, or in a savepoint of the caller's."""
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        rows: list[tuple[Any, ...]] | None = None
        while True:
            try:
                step = next(script) if rows is None else script.send(rows)
            except StopIteration as end:
                result: Result = end.value
                return result
            try:
                cursor.execute(step.text.encode(connection.info.encoding), step.parameters, prepare=False)
            except Exception as error:
                if step.origin:
                    error.add_note(f"while running lonnymq/sql/{step.origin}")
                raise
            rows = cursor.fetchall() if step.parameters or cursor.description else []
