"""A lent connection of a library other than psycopg: what a call, an installation and a load need of it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

from lonnymq.calls.statement import Call, Rows, Style
from lonnymq.client import failure
from lonnymq.errors import InvalidArgument

Result = TypeVar("Result")


class AsyncForeign(ABC):
    """Goes through the library's own methods, so that its idea of the transaction stays right."""

    async def execute(self, call: Call[Result], schema: str) -> Result:
        """Execute a call once."""
        with self._translating(schema, commits=False):
            style = await self.opened()
            commits = self.commits()
        with self._translating(schema, commits=commits):
            rows = await self.fetch(call.statement.styled(schema, style), call.values)
        return call.decode(rows)

    async def step(self, text: str, parameters: tuple[Any, ...] | None, schema: str) -> Rows:
        """Execute a step of an installation: a whole script, or one statement with parameters."""
        with self._translating(schema, commits=False):
            return await self.run(text, parameters)

    async def native(self, schema: str) -> object | None:
        """Return the driver's connection, in the caller's transaction; None if there is none to be lent."""
        with self._translating(schema, commits=False):
            return await self.driver()

    @asynccontextmanager
    async def transaction(self, schema: str) -> AsyncIterator[None]:
        """All or nothing inside: a savepoint of the caller's transaction, or one of its own."""
        with self._translating(schema, commits=False):
            async with self.savepoint():
                yield

    async def stage(self, schema: str, chunks: Iterator[bytes]) -> None:
        """Stage the rows of a bulk load."""
        with self._translating(schema, commits=False):
            await self.copy_in(schema, chunks)

    @abstractmethod
    async def opened(self) -> Style:
        """Make sure that there is a connection to PostgreSQL; return how it wants its placeholders."""

    @abstractmethod
    def commits(self) -> bool:
        """Whether the next call commits by itself."""

    @abstractmethod
    def is_lost(self) -> bool:
        """Whether the connection is closed."""

    @abstractmethod
    async def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        """Execute one statement; without values, `%` and `$` in it mean themselves."""

    async def run(self, text: str, parameters: tuple[Any, ...] | None) -> Rows:
        """Execute a script, or one statement with `%s` for each parameter."""
        return await self.fetch(text, parameters or ())

    @abstractmethod
    def savepoint(self) -> AbstractAsyncContextManager[object]:
        """The library's own, to be entered; where no transaction has begun, a transaction."""

    async def driver(self) -> object | None:
        """Begin the caller's transaction, and return the connection below, if it is of a kind to be lent."""
        return None

    async def copy_in(self, schema: str, chunks: Iterator[bytes]) -> None:
        """Copy rows, in PostgreSQL's binary format, into the stage."""
        raise InvalidArgument(
            "connection must be one over psycopg or asyncpg for copy_in(), this one's driver is another;"
            " enqueue_many() takes 100,000 messages over any"
        )

    @contextmanager
    def _translating(self, schema: str, *, commits: bool) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            ours = failure.of_foreign(error, schema, is_lost=self.is_lost(), commits=commits)
            if ours is error:
                raise
            raise ours from error
