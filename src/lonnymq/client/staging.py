"""How a bulk load is staged: the COPY statement, and how to send a lot of data with it."""

from typing import Any, cast

from psycopg import sql
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from lonnymq.schema import files

# How much is sent between two flushes.
PIECE_BYTES = 256 * 1024


def copy_statement(schema: str) -> sql.Composed:
    """Return sql/copy.sql for this queue, with a qualified table name.

    By search_path, a role that may not use the schema would not find the table.
    """
    return sql.SQL(cast("Any", files.read("copy.sql").text)).format(schema=sql.Identifier(schema))


def split(chunk: bytes | memoryview) -> list[memoryview]:
    """Return the pieces to write; flush after each of them."""
    whole = memoryview(chunk)
    return [whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES)]


def flush(pgconn: PGconn) -> PQGen[None]:
    """Make libpq send its buffer; to be passed to a connection's wait().

    Otherwise libpq buffers everything that a slower server has not accepted yet, and copies it at each write.
    """
    while pgconn.flush():
        while not (ready := (yield Wait.RW)):
            continue
        if ready & Ready.R:
            pgconn.consume_input()
