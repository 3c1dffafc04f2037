"""How far a query has come, by the last batch that Spark logged as done.

Spark tells a source that a batch is done only when it begins the next one, which may be far away.
"""

import json
from typing import TYPE_CHECKING, Any

from lonnymq.calls import follow as calls
from lonnymq.model import HistoryPosition
from lonnymq.spark.database import open_queue
from lonnymq.spark.options import ConnectionOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def end_offsets(query: "StreamingQuery") -> list[dict[str, Any]]:
    """Return where the last batch ended in each source whose offsets are objects, as ours are."""
    # Spark reports progress after it has logged a batch as done.
    progress = query.lastProgress
    found = [] if progress is None else [_parse(source["endOffset"]) for source in progress["sources"]]
    return [offset for offset in found if isinstance(offset, dict)]


def report_done(query: "StreamingQuery", connect: ConnectionOptions, reader: str) -> None:
    """Record that a query that followed history has ended, and is done with its last batch."""
    for offset in end_offsets(query):
        if "xid" in offset:
            with open_queue(connect) as queue:
                queue.caller.perform(calls.done(reader, HistoryPosition(offset["xid"], offset["id"])))


def _parse(offset: Any) -> Any:
    try:
        return json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return None
