"""Runs the steps of `lonnymq.schema` on a connection: install, migrate, check, examine, uninstall."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import tuple_row

from lonnymq.calls.statement import Rows
from lonnymq.connections.aio.borrowed import AsyncAnyConnection
from lonnymq.connections.aio.execution import transaction
from lonnymq.errors import NotPermitted

if TYPE_CHECKING:
    from lonnymq.schema import Step, Steps

Result = TypeVar("Result")


async def run_steps(steps: "Steps[Result]", connection: AsyncAnyConnection, schema: str) -> Result:
    """Run steps in one transaction, or in a savepoint of the caller's transaction."""
    if not isinstance(connection, AsyncConnection):
        async with connection.transaction(schema):
            return await _run(steps, lambda step: connection.step(step.text, step.parameters, schema))
    async with transaction(connection), AsyncCursor(connection, row_factory=tuple_row) as cursor:
        return await _run(steps, lambda step: _execute(step, cursor))


async def _run(steps: "Steps[Result]", execute: Callable[["Step"], Awaitable[Rows]]) -> Result:
    rows: Rows | None = None
    while True:
        try:
            step = next(steps) if rows is None else steps.send(rows)
        except StopIteration as end:
            result: Result = end.value
            return result
        rows = await execute(step)


async def _execute(step: "Step", cursor: AsyncCursor[tuple[Any, ...]]) -> Rows:
    text = step.text.encode(cursor.connection.info.encoding)
    try:
        await cursor.execute(text, step.parameters, prepare=False)
    except psycopg.errors.InsufficientPrivilege as error:
        origin = f" ({step.origin})" if step.origin else ""
        raise NotPermitted(f"{error.diag.message_primary}{origin}") from error
    return await cursor.fetchall() if cursor.description else []
