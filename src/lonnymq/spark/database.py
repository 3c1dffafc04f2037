"""The queue as tasks and drivers see it: a client with a connection or two, and Arrow for reading."""

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
from lonnymq.spark.options import Connect

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager import AdbcDatabase

SETTINGS = ClientSettings(pool_min_size=0, pool_max_size=2, listen=False)


def client(connect: Connect) -> Queue:
    return Queue(connect.dsn, schema=connect.schema, settings=SETTINGS)


@contextmanager
def opened(connect: Connect) -> Iterator[Queue]:
    with client(connect) as queue:
        yield queue


def batches(connect: Connect, statement: Statement, columns: Sequence[Column]) -> Iterator["pa.RecordBatch"]:
    """Yield what a statement reads, of one snapshot, with the types that Spark wants."""
    # Not its dbapi: that imports pandas, which takes longer than reading 100,000 rows.
    import adbc_driver_manager as adbc
    import pyarrow as pa

    schema = arrow_schema(columns)
    try:
        with (
            adbc.AdbcConnection(_database(connect.dsn)) as connection,
            adbc.AdbcStatement(connection) as reading,
        ):
            # A statement without parameters is sent as it is: what was doubled for placeholders is single.
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
    """Kept for the process's next task: it reads all types, in the time that ten connections take."""
    import adbc_driver_postgresql as postgresql

    given = {name: str(value) for name, value in CONNECTION_DEFAULTS.items()}
    made: AdbcDatabase = postgresql.connect(make_conninfo(make_conninfo("", **given), **_parts(dsn)))
    return made


def _parts(dsn: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}


def arrow_schema(columns: Sequence[Column]) -> "pa.Schema":
    """Return what Spark's types are in Arrow: it takes exactly these."""
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
