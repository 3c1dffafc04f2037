"""Every action has the effect that its description states, with both clients."""

from dataclasses import fields
from typing import Any

import pytest

from lonnymq import NewMessage
from lonnymq.calls.acknowledge import DETAILS
from lonnymq.model.acknowledge import ACTIONS, Action, Effect
from lonnymq.worker.verdict import Verdict

each_action = pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])


@each_action
def test_an_action_has_its_effect_on_the_message(queue: Any, action: Action[Any]) -> None:
    made = queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    assert getattr(message, action.name)() is action.done
    attempts = [(one.id, one.attempt) for one in queue.dequeue()]
    dead = [one.id for one in queue.dead().list()]
    assert (attempts, dead) == {
        Effect.END: ([], []),
        Effect.RETRY: ([(made.id, 2)], []),
        Effect.RETURN: ([(made.id, 1)], []),
        Effect.BURY: ([], [made.id]),
    }[action.effect]


@each_action
def test_an_action_frees_a_place_in_a_capped_channel(queue: Any, action: Action[Any]) -> None:
    queue.channel("a").set(max_concurrency=1)
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(2)])
    message = queue.dequeue()[0]
    assert len(queue.dequeue()) == 0
    assert getattr(queue, action.name)([message]) == [action.done]
    assert len(queue.dequeue()) == 1


@each_action
def test_an_action_on_a_cancelled_message_ends_its_lease(queue: Any, action: Action[Any]) -> None:
    created = queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    queue.cancel([created.id])
    assert getattr(message, action.name)() == "cancelled"
    assert getattr(message, action.name)() == "lease_lost"
    assert queue.status().leased == 0


@each_action
def test_a_workers_verdict_carries_every_detail_of_an_action(action: Action[Any]) -> None:
    assert set(action.details) <= {field.name for field in fields(Verdict)} & set(DETAILS)


def test_messages_may_come_from_any_iterable(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    batch = queue.dequeue(3)
    assert queue.complete(batch[n] for n in range(3)) == ["completed"] * 3
