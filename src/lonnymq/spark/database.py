"""Database access of driver and tasks: a client with at most two connections, and reads as Arrow batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from lonnymq.calls.statement import Statement
from lonnymq.client.sync.queue import Queue
from lonnymq.connections import failure
from lonnymq.connections.settings import CONNECTION_DEFAULTS, ClientSettings
from lonnymq.spark.columns import Column
from lonnymq.spark.options import ConnectionOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager import AdbcDatabase

SETTINGS = ClientSettings(pool_min_size=0, pool_max_size=2, listen=False)


def make_client(connect: ConnectionOptions) -> Queue:
    return Queue(connect.dsn, schema=connect.schema, settings=SETTINGS)


@contextmanager
def open_queue(connect: ConnectionOptions) -> Iterator[Queue]:
    with make_client(connect) as queue:
        yield queue


def read_batches(
    connect: ConnectionOptions, statement: Statement, columns: Sequence[Column]
) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a statement, from one snapshot, with the types that Spark requires."""
    # ADBC's own dbapi module imports pandas, which takes longer than reading 100,000 rows.
    import adbc_driver_manager as adbc
    import pyarrow as pa

    schema = arrow_schema(columns)
    try:
        with (
            adbc.AdbcConnection(_database(connect.dsn)) as connection,
            adbc.AdbcStatement(connection) as reading,
        ):
            # A statement without parameters is sent as it is: `%%`, psycopg's escape, becomes `%`.
            reading.set_sql_query(statement.text(connect.schema).replace("%%", "%"))
            found, _ = reading.execute_query()
            with pa.RecordBatchReader.from_stream(found) as stream:
                for batch in stream:
                    cast = [
                        column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)
                    ]
                    yield pa.record_batch(cast, schema=schema)
    except adbc.Error as error:
        ours = failure.translate_other(error, connect.schema, is_lost=False, commits=False)
        raise ours from (None if ours is error else error)


@lru_cache(maxsize=1)
def _database(dsn: str) -> "AdbcDatabase":
    """Cached for the process's next task: opening it reads the type catalog, which costs ten connections."""
    import adbc_driver_postgresql as postgresql

    defaults = {name: str(value) for name, value in CONNECTION_DEFAULTS.items()}
    conninfo = make_conninfo(make_conninfo("", **defaults), **_parse_dsn(dsn))
    database: AdbcDatabase = postgresql.connect(conninfo)
    return database


def _parse_dsn(dsn: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}


def arrow_schema(columns: Sequence[Column]) -> "pa.Schema":
    """Return the Arrow types of these columns; Spark accepts no others."""
    import pyarrow as pa

    kinds = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in columns])
