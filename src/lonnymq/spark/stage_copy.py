"""Copies a task's rows into the stage, in transactions of bounded size."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import psycopg

from lonnymq.calls import stage
from lonnymq.client.staging import copy_statement
from lonnymq.client.sync.bulk import send
from lonnymq.connections import failure
from lonnymq.errors import InvalidArgument
from lonnymq.spark.encode import Encoder

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue


class StageCopy:
    """A context manager: leaving it without an error stages what is left; `rows` counts the rows added."""

    def __init__(self, queue: "Queue", encoder: Encoder, transaction_bytes: int) -> None:
        self._queue = queue
        self._encoder = encoder
        self._transaction_bytes = transaction_bytes
        self._bytes_left = 0
        self._stack = ExitStack()
        self._copy: psycopg.Copy | None = None
        self._context: Any = None

    @property
    def rows(self) -> int:
        return self._encoder.count

    def add(self, batch: "pa.RecordBatch") -> None:
        """Add a batch; small batches are collected before they are sent."""
        try:
            self._send(self._encoder.encode(batch))
        except psycopg.Error as error:
            raise self._translate(error) from error

    def __enter__(self) -> Self:
        self._connection = self._stack.enter_context(self._queue.caller.source.dedicated_connection())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._send(self._encoder.flush())
                self._end()
        except psycopg.Error as failed:
            raise self._translate(failed) from failed
        finally:
            # Closes the connection, which aborts an unfinished COPY.
            self._stack.close()

    def _send(self, chunks: Iterator[memoryview]) -> None:
        for chunk in chunks:
            if self._copy is None:
                self._begin()
            assert self._copy is not None
            send(self._connection, self._copy, chunk)
            self._bytes_left -= len(chunk)
            if self._bytes_left <= 0:
                self._end()

    def _begin(self) -> None:
        self._connection.execute("begin")
        self._context = self._connection.cursor().copy(copy_statement(self._queue.schema))
        self._copy = self._context.__enter__()
        self._copy.write(stage.HEADER)
        self._bytes_left = self._transaction_bytes

    def _end(self) -> None:
        if self._copy is not None:
            self._copy.write(stage.TRAILER)
            self._context.__exit__(None, None, None)
            self._connection.execute("commit")
            self._copy = None

    def _translate(self, error: psycopg.Error) -> Exception:
        if isinstance(error, psycopg.errors.CharacterNotInRepertoire):
            return InvalidArgument(
                "column channel or key contains a NUL character, which PostgreSQL cannot store in text"
            )
        return failure.translate(error, self._connection, self._queue.schema, commits=False)
