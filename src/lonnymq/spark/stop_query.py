"""Stops a query that consumes messages, and completes the last batch that Spark logged as done.

Spark does not tell a source that its query was stopped: without this, the messages of the last batch are
completed when the query is started again, or delivered again when their leases end.
"""

import json
from typing import TYPE_CHECKING, Any

from lonnymq.spark.consume import complete_claim
from lonnymq.spark.database import open_queue
from lonnymq.spark.options import ConnectionOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def stop_query(query: "StreamingQuery", dsn: str, *, schema: str = "lonnymq") -> None:
    """Stop a query in mode consume. Of a batch that is being processed, the messages are delivered again."""
    query.stop()
    # Spark reports progress after it has logged a batch as done, so this is the end of such a batch.
    progress = query.lastProgress
    if progress is not None:
        with open_queue(ConnectionOptions(dsn, schema)) as queue:
            for source in progress["sources"]:
                claim = _claim_of(source["endOffset"])
                if claim is not None:
                    complete_claim(queue, claim)


def _claim_of(offset: Any) -> str | None:
    """Return the claim of an offset of ours; other sources of the query have other offsets."""
    try:
        parsed = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return None
    claim = parsed.get("claim") if isinstance(parsed, dict) else None
    return claim if isinstance(claim, str) else None
