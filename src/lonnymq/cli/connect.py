"""The queue that a command speaks to."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lonnymq import ClientSettings, ConnectionLost, Queue

# A person waits: a server that is away for longer is worth an error. PgBouncer may not keep what is prepared.
SETTINGS = ClientSettings(pool_max_size=1, prepare_threshold=None, retry_for_s=1.0, busy_for_s=1.0)
# A command says by its error that there is no connection; `work`, which waits for one, logs.
logging.getLogger("lonnymq.client").addHandler(logging.NullHandler())


@contextmanager
def opened(dsn: str, schema: str) -> Iterator[Queue]:
    """Open the queue, and close it when the command ends."""
    with Queue(dsn, schema=schema, settings=SETTINGS) as queue:
        try:
            yield queue
        except ConnectionLost as error:
            if not dsn:
                error.add_note(
                    "neither --dsn nor LONNYMQ_DSN is set: libpq's environment and defaults were used"
                )
            raise
