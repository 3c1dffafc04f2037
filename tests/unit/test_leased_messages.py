"""Leased messages are built without their constructor."""

from dataclasses import fields

from lonnymq import AsyncMessage
from lonnymq.model import LeasedMessage
from lonnymq.model.lease import construct


def test_a_message_of_a_reply_equals_one_that_was_constructed() -> None:
    values = [f"the value of {field.name}" for field in fields(LeasedMessage)]
    more = {"queue": "a queue", "attempt_state": None}
    by_name = dict(zip((field.name for field in fields(LeasedMessage)), values, strict=True)) | more
    assert vars(construct(AsyncMessage, values, more)) == vars(AsyncMessage(**by_name))  # type: ignore[arg-type]
