"""Instants are returned in UTC, whatever the time zone of the session."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from lonnymq import Queue


@pytest.mark.parametrize("zone", ["America/Chicago", "Asia/Kathmandu"])
def test_returned_instants_are_in_utc(dsn: str, zone: str) -> None:
    with Queue(psycopg.conninfo.make_conninfo(dsn, options=f"-c timezone={zone}")) as queue:
        queue.channel("acme").set(release_interval_ms=60_000)
        queue.enqueue("acme", 1)
        queue.enqueue("acme", 2)
        (message,) = queue.dequeue(2)
        queue.cron.set("nightly", "0 3 * * *", channel="acme", payload=None)
        status = queue.channel("acme").status()
        assert status is not None
        (cron,) = queue.cron.list()
        found = [
            message.created_at,
            message.leased_at,
            status.created_at,
            status.next_release_at,
            status.last_release_at,
            queue.channel("acme").explain().next_release_at,
            cron.created_at,
            cron.mark_at,
            queue.activity().at,
        ]
    assert [instant.tzinfo for instant in found if instant] == [UTC] * len(found)
    assert all(abs(instant - datetime.now(UTC)) < timedelta(minutes=5) for instant in found if instant)
