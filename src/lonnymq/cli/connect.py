"""The queue that a command works on."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lonnymq import ClientSettings, ConnectionLost, Queue

# A person waits for the answer, so retries are short. Behind PgBouncer, prepared statements may not work.
SETTINGS = ClientSettings(pool_max_size=1, prepare_threshold=None, retry_for_s=1.0, busy_for_s=1.0)
# A command reports a lost connection as its error; only `work`, which waits for the server, logs it.
logging.getLogger("lonnymq.client").addHandler(logging.NullHandler())


@contextmanager
def open_queue(dsn: str, schema: str) -> Iterator[Queue]:
    """Open the queue for one command."""
    with Queue(dsn, schema=schema, settings=SETTINGS) as queue:
        try:
            yield queue
        except ConnectionLost as error:
            if not dsn:
                error.add_note(
                    "neither --dsn nor LONNYMQ_DSN is set: the PG* environment variables and libpq's"
                    " defaults were used"
                )
            raise
