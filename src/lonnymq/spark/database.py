"""The queue as tasks and drivers see it: a client with a connection or two, and Arrow for reading."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from lonnymq.calls.statement import Statement
from lonnymq.client import failure
from lonnymq.client.settings import CONNECTION_DEFAULTS, ClientSettings
from lonnymq.client.sync.queue import Queue
from lonnymq.spark.columns import Column
from lonnymq.spark.options import Connect

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS = ClientSettings(pool_min_size=0, pool_max_size=2, listen=False)


def client(connect: Connect) -> Queue:
    return Queue(connect.dsn, schema=connect.schema, settings=SETTINGS)


@contextmanager
def opened(connect: Connect) -> Iterator[Queue]:
    with client(connect) as queue:
        yield queue


def batches(connect: Connect, statement: Statement, columns: Sequence[Column]) -> Iterator["pa.RecordBatch"]:
    """Yield what a statement reads, of one snapshot, with the types that Spark wants."""
    import adbc_driver_postgresql.dbapi as adbc
    import pyarrow as pa

    given = {name: str(value) for name, value in CONNECTION_DEFAULTS.items()}
    uri = make_conninfo(make_conninfo("", **given), **_parts(connect.dsn))
    schema = arrow_schema(columns)
    try:
        with adbc.connect(uri) as connection, connection.cursor() as cursor:
            # A statement without parameters is sent as it is: what was doubled for placeholders is single.
            cursor.execute(statement.text(connect.schema).replace("%%", "%"))
            for batch in cursor.fetch_record_batch():
                yield pa.record_batch(
                    [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)],
                    schema=schema,
                )
    except adbc.Error as error:
        ours = failure.of_foreign(error, connect.schema, is_lost=False, commits=False)
        raise ours from (None if ours is error else error)


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
