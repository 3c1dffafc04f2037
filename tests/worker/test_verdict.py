"""Retries and verdicts, without a database."""

import math
import pickle
from asyncio import CancelledError
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from lonnymq import JSON, Bury, Defer, Handler, InvalidArgument, Retry
from lonnymq.model.acknowledge import BURY, DEFER
from lonnymq.worker.verdict import (
    COMPLETED,
    GIVEN_BACK,
    NO_ACTION,
    Interruption,
    Judge,
    TimedOut,
    Verdict,
    failure,
)

HANDLER = Handler(call=lambda message: None, retry=Retry(first_s=2, factor=3, max_s=10, jitter=0))
LAST = Handler(call=lambda message: None, max_attempts=3, timeout=1.5, name="transcode")
ERROR = RuntimeError("full")
JUDGE = Judge(JSON, Random(1))


def test_delays_grow_up_to_max_s() -> None:
    assert [HANDLER.retry.delay_s(attempt, Random()) for attempt in (1, 2, 3, 4)] == [2, 6, 10, 10]
    assert Retry(first_s=1, factor=2, jitter=0).delay_s(2_000_000_000, Random()) == 3600
    assert Retry(first_s=0).delay_s(2_000_000_000, Random()) == 0


def test_jitter_shortens_a_delay_by_up_to_its_share() -> None:
    delays = [Retry(first_s=10, jitter=0.3).delay_s(1, Random(seed)) for seed in range(200)]
    assert 7 <= min(delays) < 7.5
    assert 9.5 < max(delays) <= 10


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("first_s", -1),
        ("first_s", math.nan),
        ("factor", 0.5),
        ("max_s", math.inf),
        ("jitter", 1.1),
        ("jitter", "x"),
    ],
)
def test_an_invalid_retry_is_refused(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument} must be a number"):
        Retry(**{argument: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("handler", "attempt", "error", "why", "verdict"),
    [
        (HANDLER, 1, None, None, COMPLETED),
        (HANDLER, 1, Bury("no video"), None, Verdict(BURY, error="no video")),
        (HANDLER, 9, Defer(1.5, state=[1], error="later"), None, Verdict(DEFER, 1500, b"[1]", "later")),
        (HANDLER, 9, Defer(), None, Verdict(DEFER)),
        (LAST, 3, Defer(1), None, Verdict(BURY, error="deferred by its handler")),
        (HANDLER, 2, ERROR, None, Verdict(DEFER, 6000, error="RuntimeError: full")),
        (LAST, 3, ERROR, None, Verdict(BURY, error="RuntimeError: full")),
        # A message whose lease was lost can be neither completed nor given back.
        (HANDLER, 1, None, Interruption.LOST, NO_ACTION),
        (HANDLER, 1, ERROR, Interruption.LOST, NO_ACTION),
        # A cancelled message occupies a place in its channel until the handler has stopped.
        (HANDLER, 1, None, Interruption.CANCELLED, GIVEN_BACK),
        # A handler that finishes in spite of its interruption has finished.
        (HANDLER, 1, None, Interruption.STOPPED, COMPLETED),
        (HANDLER, 1, None, Interruption.TIMED_OUT, COMPLETED),
        (LAST, 3, ERROR, Interruption.STOPPED, GIVEN_BACK),
        (
            LAST,
            3,
            ERROR,
            Interruption.TIMED_OUT,
            Verdict(BURY, error="lonnymq.worker.verdict.TimedOut: transcode took longer than 1.5 s"),
        ),
    ],
)
def test_the_verdict_follows_from_error_and_interruption(
    handler: Handler, attempt: int, error: BaseException | None, why: Interruption | None, verdict: Verdict
) -> None:
    assert JUDGE.verdict(handler, attempt, error, why) == verdict


def test_a_state_that_cannot_be_encoded_fails_the_attempt() -> None:
    verdict = JUDGE.verdict(HANDLER, 1, Defer(state=object()), None)
    assert verdict.action is DEFER
    assert verdict.delay_ms == 2000
    assert "state must be" in (verdict.error or "")


class Bare(Defer):
    """Does not call its parent's constructor."""

    def __init__(self) -> None:
        pass


class Hopeless(Retry):
    def delay_s(self, attempt: int, random: Random) -> float:
        return attempt / 0


UNPRINTABLE = SyntaxError("x", ("file", "a", "b", 5))  # type: ignore[arg-type]


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("handler", "error", "shown"),
    [
        (HANDLER, Bare(), "AttributeError"),
        (HANDLER, Defer(state=nested(100_000)), "RecursionError"),
        (HANDLER, UNPRINTABLE, "SyntaxError, which cannot be shown"),
        (Handler(call=print, retry=Hopeless()), ERROR, "ZeroDivisionError"),
    ],
)
def test_an_attempt_whose_error_cannot_be_handled_is_retried(
    handler: Handler, error: Exception, shown: str
) -> None:
    verdict = JUDGE.verdict(handler, 1, error, None)
    assert verdict.action is DEFER
    assert shown in str(verdict.error)


@pytest.mark.parametrize("handler", [HANDLER, LAST])
def test_the_error_of_a_deferral_is_escaped(handler: Handler) -> None:
    for error, kept in (("a\0b", "a\\x00b"), ("\ud800", "\\ud800"), (ERROR, "full")):
        assert JUDGE.verdict(handler, 3, Defer(error=error), None).error == kept  # type: ignore[arg-type]


class RateLimited(ConnectionError):
    pass


def test_the_class_of_an_exception_decides_about_the_retry() -> None:
    retry = Retry(
        dont_retry_on=(ValueError,), delays={ConnectionError: 60, TimedOut: timedelta(minutes=5)}, jitter=0.0
    )
    handler = Handler(call=lambda message: None, retry=retry, max_attempts=3, timeout=1)
    judge = Judge(JSON)

    def verdict(error: BaseException, attempt: int = 1, why: Interruption | None = None) -> Any:
        found = judge.verdict(handler, attempt, error, why)
        return found.action, found.delay_ms

    assert verdict(UnicodeError("x")) == (BURY, None)
    assert verdict(KeyError("x")) == (DEFER, 1_000)
    assert verdict(RateLimited("x")) == (DEFER, 60_000)
    assert verdict(CancelledError(), why=Interruption.TIMED_OUT) == (DEFER, 300_000)
    assert verdict(RateLimited("x"), attempt=3) == (BURY, None)
    # A handler that asks for another attempt gets it.
    assert verdict(Defer(5)) == (DEFER, 5_000)
    only = replace(handler, retry=Retry(retry_on=ConnectionError))
    assert judge.verdict(only, 1, RateLimited("x"), None).action is DEFER
    assert judge.verdict(only, 1, KeyError("x"), None).action is BURY


def test_an_exception_group_is_judged_by_the_exceptions_in_it() -> None:
    def verdict(retry: Retry, *errors: Exception) -> Verdict:
        group = ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", errors)])
        return JUDGE.verdict(replace(LAST, retry=retry), 1, group, None)

    lost, wrong = ConnectionError("lost"), ValueError("wrong")
    only = Retry(retry_on=ConnectionError, jitter=0, delays={ConnectionError: 60, OSError: 5, Exception: 1})
    assert verdict(only, lost).delay_ms == 60_000
    assert verdict(only, ConnectionResetError(), lost).delay_ms == 60_000
    assert verdict(only, lost, wrong).action is BURY
    never = Retry(dont_retry_on=ValueError, jitter=0, delays={ExceptionGroup: 7})
    assert verdict(never, lost).delay_ms == 7_000
    assert verdict(never, lost, wrong).action is BURY
    assert verdict(Retry(retry_on=ExceptionGroup, first_s=2, jitter=0), wrong).delay_ms == 2_000
    assert verdict(Retry(), Defer(1.5, state=[1])) == Verdict(DEFER, 1500, b"[1]")
    assert verdict(Retry(), Bury("no video")) == Verdict(BURY, error="no video")
    assert verdict(Retry(), lost, Bury("no video")).action is BURY
    assert failure(LAST, ExceptionGroup("", [Defer(1)]), None) is None


def test_a_retry_is_pickled_and_refuses_what_is_no_exception() -> None:
    retry = Retry(delays={OSError: 5})
    assert pickle.loads(pickle.dumps(retry)) == retry
    assert hash(retry) == hash(Retry())
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"retry_on": "OSError"}, "retry_on must be a class of exceptions"),
        ({"dont_retry_on": (OSError, 5)}, "dont_retry_on must be a class of exceptions"),
        ({"delays": {int: 5}}, "delays must be a class of exceptions"),
        ({"delays": {OSError: -1}}, "delays must be a timedelta or a number of seconds"),
        ({"delays": 5}, "delays must be a mapping"),
    ]
    for options, match in wrong:
        with pytest.raises(InvalidArgument, match=match):
            Retry(**options)


def test_a_state_of_a_failed_attempt_goes_with_a_retry_that_has_none() -> None:
    retry, own = Verdict(DEFER, 5, error="full"), Verdict(DEFER, 5, state=b"own")
    assert retry.with_state(b"half") == Verdict(DEFER, 5, b"half", "full")
    for verdict in (own, Verdict(BURY, error="full"), COMPLETED, GIVEN_BACK, NO_ACTION):
        assert verdict.with_state(b"half") is verdict
    assert retry.with_state(None) is retry
