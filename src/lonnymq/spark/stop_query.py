"""Stops a query that consumes messages, and completes the last batch that Spark logged as done.

Spark does not tell a source that its query was stopped: without this, the messages of the last batch are
completed when the query is started again, or delivered again when their leases end.
"""

from typing import TYPE_CHECKING

from lonnymq.spark.consume import complete_claim
from lonnymq.spark.database import open_queue
from lonnymq.spark.options import ConnectionOptions
from lonnymq.spark.query_progress import end_offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def stop_query(query: "StreamingQuery", dsn: str, *, schema: str = "lonnymq") -> None:
    """Stop a query in mode consume. Of a batch that is being processed, the messages are delivered again."""
    query.stop()
    claims = [offset["claim"] for offset in end_offsets(query) if isinstance(offset.get("claim"), str)]
    if claims:
        with open_queue(ConnectionOptions(dsn, schema)) as queue:
            for claim in claims:
                complete_claim(queue, claim)
