"""The interface to borrowed connections of libraries other than psycopg."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

from lonnymq.calls.statement import Call, Rows, Style
from lonnymq.connections import failure
from lonnymq.errors import InvalidArgument

Result = TypeVar("Result")


class AsyncAdapter(ABC):
    """Uses only the library's own methods, so that the library knows the state of the transaction."""

    async def execute(self, call: Call[Result], schema: str) -> Result:
        """Execute a call once."""
        with self._translate_errors(schema, commits=False):
            style = await self.open()
            commits = self.commits()
        with self._translate_errors(schema, commits=commits):
            rows = await self.fetch(call.statement.text_in_style(schema, style), call.values)
        return call.decode(rows)

    async def step(self, text: str, parameters: tuple[Any, ...] | None, schema: str) -> Rows:
        """Execute a schema step: a whole script, or one statement with parameters."""
        with self._translate_errors(schema, commits=False):
            return await self.run(text, parameters)

    async def native(self, schema: str) -> object | None:
        """Return the driver's connection, in the caller's transaction; None if it cannot be borrowed."""
        with self._translate_errors(schema, commits=False):
            return await self.driver()

    @asynccontextmanager
    async def transaction(self, schema: str) -> AsyncIterator[None]:
        """Run the block in a savepoint of the caller's transaction, or in a transaction of its own."""
        with self._translate_errors(schema, commits=False):
            async with self.savepoint():
                yield

    async def stage(self, schema: str, chunks: Iterator[bytes]) -> None:
        """Stage the rows of a bulk load."""
        with self._translate_errors(schema, commits=False):
            await self.copy_in(schema, chunks)

    @abstractmethod
    async def open(self) -> Style:
        """Make sure that there is a connection to PostgreSQL; return its style of placeholders."""

    @abstractmethod
    def commits(self) -> bool:
        """Whether the next call commits by itself."""

    @abstractmethod
    def is_lost(self) -> bool:
        """Whether the connection is closed."""

    @abstractmethod
    async def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        """Execute one statement; without values, `%` and `$` in it are literal."""

    async def run(self, text: str, parameters: tuple[Any, ...] | None) -> Rows:
        """Execute a script, or one statement with `%s` for each parameter."""
        return await self.fetch(text, parameters or ())

    @abstractmethod
    def savepoint(self) -> AbstractAsyncContextManager[object]:
        """Return the library's context manager for a savepoint, or for a transaction if none has begun."""

    async def driver(self) -> object | None:
        """Begin the caller's transaction, and return the driver's connection if it can be borrowed."""
        return None

    async def copy_in(self, schema: str, chunks: Iterator[bytes]) -> None:
        """Copy rows, in PostgreSQL's binary format, into the stage."""
        raise InvalidArgument(
            "connection must use psycopg or asyncpg for copy_in(), but this one uses another driver;"
            " enqueue_many() takes up to 100,000 messages with any driver"
        )

    @contextmanager
    def _translate_errors(self, schema: str, *, commits: bool) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            ours = failure.translate_other(error, schema, is_lost=self.is_lost(), commits=commits)
            if ours is error:
                raise
            raise ours from error
