"""Arguments, codecs and drafts, which are pure functions."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lonnymq import InvalidArgument, NewMessage, Queue
from lonnymq.calls import argument, stage
from lonnymq.calls.codec import JSON, encode_payload
from lonnymq.calls.draft import Draft, draft
from lonnymq.calls.statement import array, dump
from lonnymq.errors import invalid

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_json_is_decoded_to_the_same_value(value: Any) -> None:
    assert JSON.decode(encode_payload("payload", value, JSON)) == value


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=255))
def test_any_name_without_control_characters_is_a_valid_channel(name: str) -> None:
    assert argument.channel(name) == name


@given(st.text(max_size=50))
def test_any_error_text_can_be_stored(error: str) -> None:
    stored = argument.error_text(error + "\ud800\0")
    assert stored is not None
    assert "\0" not in stored
    stored.encode("utf-8")


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (0, 0),
        (1.5, 1500),
        (0.1, 100),
        (0.0001, 1),
        (timedelta(microseconds=1), 1),
        (timedelta(minutes=5), 300_000),
        (None, None),
    ],
)
def test_a_delay_is_rounded_up_to_milliseconds(delay: Any, expected: int | None) -> None:
    assert argument.delay_ms("delay", delay) == expected


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))])))
def test_an_instant_is_rounded_down_to_milliseconds(at: datetime) -> None:
    milliseconds = argument.epoch_ms("at", at)
    assert timedelta(0) <= at - argument.instant(milliseconds) < timedelta(milliseconds=1)


@given(st.integers(min_value=1, max_value=argument.MAX_DEQUEUE_AT))
def test_a_higher_priority_sorts_first(priority: int) -> None:
    made = draft(NewMessage(channel="a", payload=1, priority=priority), JSON)
    assert made.dequeue_at == -priority


def test_a_priority_with_a_delay_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="got delay and priority"):
        draft(NewMessage(channel="a", payload=1, priority=1, delay=1), JSON)


def test_an_array_of_only_none_is_sent_as_none() -> None:
    assert array([None, None]) is None
    assert array([None, 1]) == [None, 1]


def test_numbers_are_sent_as_text_whatever_their_width() -> None:
    assert dump("bigint", 5) == "5"
    assert dump("bigint[]", [1, 2**40]) == "{1,1099511627776}"
    assert dump("bigint?[]", [-1, None, 2**40]) == "-1,-,1099511627776"
    assert dump("jsonb", {"a": None}) == '{"a": null}'
    assert dump("text", None) is None


def test_a_staged_row_has_as_many_fields_as_its_header_says() -> None:
    packer = stage.Packer("p", UUID(int=7))
    packer.add(Draft("ä", b"\0", -1, None, None, 2))
    packer.add(Draft("ä", b"", None, None, None, None))
    row = packer.flush()
    count, place = int.from_bytes(row[:2]), 2
    for _ in range(count):
        length = int.from_bytes(row[place : place + 4], signed=True)
        place += 4 + max(length, 0)
    assert place == len(row)


@pytest.mark.parametrize("dsn", ["postgresql+psycopg://me:s3cret@db/x", "me:s3cret@db"])
def test_a_malformed_dsn_is_refused_without_showing_its_password(dsn: str) -> None:
    with pytest.raises(InvalidArgument, match="dsn must be a libpq connection string") as caught:
        Queue(dsn)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_value_that_cannot_be_shown_is_still_refused_with_an_error() -> None:
    assert (
        str(invalid("limit", 10**5000, "small"))
        == "limit must be small, got a value of type int that cannot be shown"
    )
