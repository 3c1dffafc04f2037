"""A step: SQL to run, whose rows decide what comes next."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import sql

from lonnymq.schema import files

Rows = list[tuple[Any, ...]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """Text to execute: a whole script, or one statement with parameters."""

    text: str
    parameters: tuple[Any, ...] | None = None
    origin: str | None = None


Steps = Generator[Step, Rows, Result]


def script(path: str) -> Step:
    return Step(files.read(path).text, origin=path)


def question(path: str) -> Step:
    """Return a query without its header: over asyncpg only texts that begin with select have rows."""
    lines = files.read(path).text.splitlines(keepends=True)
    return Step("".join(line for line in lines if not line.startswith("--")), origin=path)


def secluded(schema: str, steps: Steps[Result]) -> Steps[Result]:
    """Take these steps with PostgreSQL's own functions and operators; then put the settings back.

    The caller's search_path may lead to those of others, which would be called with this role's rights.
    """
    rows = yield Step(
        "select pg_catalog.current_setting('search_path'), pg_catalog.current_setting('client_min_messages')"
    )
    yield Step("set local search_path to pg_catalog, pg_temp")
    # The files in sql/schema/ and sql/doctor/ are about this one.
    yield Step("select set_config('lonnymq.examined', %s, true)", (schema,))
    result = yield from steps
    yield Step(
        "select pg_catalog.set_config('search_path', %s, true),"
        " pg_catalog.set_config('client_min_messages', %s, true)",
        rows[0],
    )
    return result


def quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)
