"""A million messages at once: COPY to the stage and publish, compared with COPY into the bare table."""

import time
import uuid
from functools import partial

import psycopg

from benchmarks.binary_copy import bare_blocks, copy_in, stage_blocks
from benchmarks.contenders import Bare, LonnyMQ
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names
from lonnymq.client.staging import copy_statement

TITLE = "bulk create of 1M messages in 1,000 channels by COPY, until visible and in fair order"
NAME = "bulk-create"
CHANNELS = channel_names(1_000)
COPY_BARE = b"copy bare.message (content) from stdin (format binary)"
COPY_STAGE = copy_statement("lonnymq")


def run(harness: Harness) -> list[Row]:
    rates = harness.measure_in_turns(
        NAME, {"lonnymq": partial(measure_lonnymq, harness), "bare": partial(measure_bare, harness)}
    )
    return [Row(NAME, TITLE, "bare", "messages/s", rates["lonnymq"], rates["bare"], at_least=0.6)]


def measure_bare(harness: Harness) -> float:
    blocks = bare_blocks(harness.effort.bulk)
    with harness.install(Bare()) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        began_at = time.monotonic()
        copy_in(connection, COPY_BARE, blocks)
        return harness.effort.bulk / (time.monotonic() - began_at)


def measure_lonnymq(harness: Harness) -> float:
    messages, publication, part = harness.effort.bulk, str(uuid.uuid4()), uuid.uuid4()
    blocks = stage_blocks(messages, CHANNELS, publication, part)
    with harness.install(LonnyMQ()) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        began_at = time.monotonic()
        copy_in(connection, COPY_STAGE, blocks)
        connection.execute(
            "select * from lonnymq.message_publish(%s, %s, %s::bigint[])", (publication, [part], [messages])
        )
        took_s = time.monotonic() - began_at
        check_visible_and_fair(dsn, connection, messages)
        return messages / took_s


def check_visible_and_fair(
    dsn: str, connection: psycopg.Connection[tuple[object, ...]], messages: int
) -> None:
    row = connection.execute("select count(*) from lonnymq.message").fetchone()
    assert row == (messages,), row
    session = LonnyMQ().session(dsn)
    served = {lease[2] for lease in session.dequeue(100)}
    # A turn is worth four messages.
    assert len(served) >= 25, f"100 messages came from {len(served)} channels"
    session.close()


CASE = Case(NAME, TITLE, run)
