"""A queue's default policy, as clients, operators and tenants see it."""

from typing import Any

import psycopg
import pytest

from lonnymq import ChannelPolicy, CreateOutcome, InvalidArgument
from lonnymq.model import DEFAULT_POLICY_FIELDS
from tests.conftest import Connect


def policy_of(name: str, value: int) -> ChannelPolicy:
    fields: dict[str, Any] = {name: value}
    return ChannelPolicy(**fields)


def test_a_default_applies_until_a_channel_has_its_own_value_or_lifts_it(queue: Any) -> None:
    channel = queue.channel("acme")
    channel.set()
    for name, field in DEFAULT_POLICY_FIELDS.items():
        assert channel.status().policy_sources[name] == "unset"
        assert queue.set(default_policy={name: field.high}).default_policy == policy_of(name, field.high)
        assert channel.status().policy == policy_of(name, field.high)
        assert channel.status().policy_sources[name] == "default"
        channel.set(**{name: field.low})
        assert channel.status().policy == policy_of(name, field.low)
        assert channel.status().policy_sources[name] == "own"
        if field.can_be_lifted:
            channel.set(**{name: "none"})
            assert channel.status().policy == ChannelPolicy()
            assert channel.status().policy_sources[name] == "lifted"
        channel.set(**{name: None})
        assert queue.set(default_policy={name: None}).default_policy == ChannelPolicy()
        assert channel.status().policy == ChannelPolicy()


def test_fields_that_are_not_given_stay_and_a_new_channel_has_them_all(queue: Any) -> None:
    queue.set(default_policy={"max_concurrency": 5})
    queue.set(default_policy={"weight": 3})
    queue.set(quantum=2)
    queue.enqueue("new", 1)
    assert queue.channel("new").status().policy == ChannelPolicy(max_concurrency=5, weight=3)
    queue.channel("new").set_policy(ChannelPolicy(weight=2))
    assert queue.channel("new").status().policy == ChannelPolicy(max_concurrency=5, weight=2)


def test_a_default_that_is_no_policy_is_refused_before_any_call(queue: Any) -> None:
    with pytest.raises(InvalidArgument, match="max_concurrency must be a whole number between 1 and"):
        queue.set(default_policy={"max_concurrency": 0})
    with pytest.raises(InvalidArgument, match=r"max_concurrency must be .*, got 'none'"):
        queue.set(default_policy={"max_concurrency": "none"})
    with pytest.raises(InvalidArgument, match="no field 'is_paused'; use one of max_concurrency"):
        queue.set(default_policy={"is_paused": True})
    with pytest.raises(InvalidArgument, match="default_policy must be a mapping"):
        queue.set(default_policy=5)


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (
            '{"max_concurrency": 0}',
            "max_concurrency must be a whole number between 1 and 2147483647, or null",
        ),
        ('{"max_concurrency": "none"}', 'max_concurrency must be .*, got "none"'),
        ('{"is_paused": true}', "default_policy must be limited to the fields max_attempts"),
        ("[1]", "default_policy must be a JSON object"),
    ],
)
def test_sql_refuses_a_default_that_is_no_policy(
    queue: Any, connect: Connect, policy: str, error: str
) -> None:
    with pytest.raises(psycopg.Error, match=error) as raised:
        connect().execute("select queue_set(jsonb_build_object('default_policy', %s::jsonb))", [policy])
    assert raised.value.sqlstate == "LQ001"


def test_a_channel_cannot_lift_what_is_no_limit(queue: Any) -> None:
    with pytest.raises(InvalidArgument, match="weight must be"):
        queue.channel("acme").set(weight="none")


def test_a_default_size_drops_messages_of_every_way_to_create_them(queue: Any) -> None:
    queue.set(default_policy={"max_size": 2})
    queue.channel("free").set(max_size="none")
    outcomes = [queue.enqueue("acme", n).outcome for n in range(3)]
    assert outcomes == [CreateOutcome.CREATED, CreateOutcome.CREATED, CreateOutcome.DROPPED]
    assert [queue.enqueue("free", n).outcome for n in range(3)] == [CreateOutcome.CREATED] * 3


def test_default_attempts_bury_a_message_that_has_no_limit_of_its_own(queue: Any) -> None:
    queue.set(default_policy={"max_attempts": 1})
    queue.channel("patient").set(max_attempts="none")
    for channel in ("acme", "patient"):
        queue.enqueue(channel, 1)
    queue.enqueue("acme", 2, max_attempts=2)
    for message in queue.dequeue(limit=10):
        message.defer(error="no")
    assert [one.channel for one in queue.dead().list()] == ["acme"]
    assert {one.max_attempts for one in queue.dequeue(limit=10)} == {None, 2}


def test_explain_says_that_the_default_policy_holds_a_message_back(queue: Any) -> None:
    queue.set(default_policy={"max_concurrency": 1})
    for n in range(2):
        queue.enqueue("acme", n)
    queue.dequeue(limit=2)
    assert queue.channel("acme").explain().detail == (
        "the only message allowed at a time is leased, by the default policy of the queue"
    )
