"""A step: SQL to execute. Its rows decide which step follows."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import sql

from lonnymq.schema import files

Rows = list[tuple[Any, ...]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """SQL to execute: a whole script, or one statement with parameters. `origin` is its file."""

    text: str
    parameters: tuple[Any, ...] | None = None
    origin: str | None = None


Steps = Generator[Step, Rows, Result]


def script(path: str) -> Step:
    return Step(files.read(path).text, origin=path)


def query(path: str) -> Step:
    """Return a query without its header: asyncpg returns rows only for text that begins with `select`."""
    lines = files.read(path).text.splitlines(keepends=True)
    return Step("".join(line for line in lines if not line.startswith("--")), origin=path)


def with_safe_search_path(schema: str, steps: Steps[Result]) -> Steps[Result]:
    """Run these steps with only PostgreSQL's own functions and operators in search_path, then restore it.

    The caller's search_path may contain functions of other roles, which would run with this role's
    privileges.
    """
    rows = yield Step(
        "select pg_catalog.current_setting('search_path'), pg_catalog.current_setting('client_min_messages'),"
        " pg_catalog.current_setting('check_function_bodies')"
    )
    yield Step("set local search_path to pg_catalog, pg_temp")
    # The files in sql/schema/ and sql/doctor/ read the schema's name from this setting.
    yield Step("select set_config('lonnymq.schema', %s, true)", (schema,))
    result = yield from steps
    yield Step(
        "select pg_catalog.set_config('search_path', %s, true),"
        " pg_catalog.set_config('client_min_messages', %s, true),"
        " pg_catalog.set_config('check_function_bodies', %s, true)",
        rows[0],
    )
    return result


def script_text(steps: Iterable[Step]) -> str:
    parts = [f"-- {step.origin}\n{step.text}" if step.origin else step.text for step in steps]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def quote_identifier(name: str) -> str:
    return sql.Identifier(name).as_string(None)
