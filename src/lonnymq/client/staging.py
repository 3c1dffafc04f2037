"""How a bulk load is staged: the statement, and how to send much."""

from typing import Any, cast

from psycopg import sql
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from lonnymq.schema import files

# Of what is sent between two flushes.
PIECE_BYTES = 256 * 1024


def copying(schema: str) -> sql.Composed:
    """Return sql/copy.sql for this queue, its table named in full.

    Found by search_path instead, it would be missing for a role that may not use the schema.
    """
    return sql.SQL(cast("Any", files.read("copy.sql").text)).format(schema=sql.Identifier(schema))


def pieces(block: bytes | memoryview) -> list[memoryview]:
    """Return what to write at once; after each of them flush."""
    whole = memoryview(block)
    return [whole[place : place + PIECE_BYTES] for place in range(0, len(whole), PIECE_BYTES)]


def flushing(pgconn: PGconn) -> PQGen[None]:
    """Have libpq send what it keeps; for a connection's wait().

    Otherwise it keeps all that a slower server has not taken yet, and moves it about each time.
    """
    while pgconn.flush():
        while not (ready := (yield Wait.RW)):
            continue
        if ready & Ready.R:
            pgconn.consume_input()
