"""Rule 4 and invariant 6: the token is the fence, because attempt numbers can be issued twice."""

import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.conftest import Connect
from tests.races.sessions import complete, create, dequeue, end, value

pytestmark = pytest.mark.race

VERBS = [*(action.name for action in ACTIONS), "heartbeat"]


def test_an_attempt_that_was_rolled_back_is_issued_again_with_another_token(connect: Connect) -> None:
    first, second = connect(), connect()
    create(first, "a")
    first.execute("begin")
    (stale,) = dequeue(first)
    first.execute("rollback")
    (fresh,) = dequeue(second)
    assert (stale.id, stale.attempt) == (fresh.id, fresh.attempt)
    assert stale.token != fresh.token
    for verb in VERBS:
        assert end(first, verb, [stale]) == ["lease_lost"]
    assert complete(second, [fresh]) == ["completed"]


def test_an_attempt_that_was_given_back_cannot_end_the_next_one(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    (stale,) = dequeue(session)
    end(session, "give_back", [stale])
    (fresh,) = dequeue(session)
    assert (stale.attempt, fresh.attempt) == (1, 1)
    for verb in VERBS:
        assert end(session, verb, [stale]) == ["lease_lost"]
    assert complete(session, [fresh]) == ["completed"]


def test_an_expired_attempt_cannot_end_the_next_one(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    (stale,) = dequeue(session)
    session.execute("update lease set unlock_at = 0")
    (fresh,) = dequeue(connect())
    assert (stale.attempt, fresh.attempt) == (1, 2)
    for verb in VERBS:
        assert end(session, verb, [stale]) == ["lease_lost"]
    assert complete(session, [fresh]) == ["completed"]


def test_no_token_is_issued_twice(connect: Connect) -> None:
    sessions = [connect() for _ in range(5)]
    create(sessions[0], "a", 500)
    tokens: list[int] = []
    for _ in range(20):
        for session in sessions:
            leased = dequeue(session, 100)
            tokens += [one.token for one in leased]
            end(session, "give_back", leased)
    assert len(tokens) == len(set(tokens)) == 10_000
    assert value(sessions[0], "select count(*) from message") == 500
