"""Every action has the effect that its description states, with both clients."""

from dataclasses import fields
from typing import Any

import pytest

from lonnymq import NewMessage
from lonnymq.calls.acknowledge import DETAILS
from lonnymq.model.acknowledge import ACTIONS, Action, Effect
from lonnymq.worker.verdict import Verdict
from tests.conftest import Connect

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
        Effect.NEXT: ([(made.id, 1)], []),
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


def test_the_acknowledgements_of_sql_are_the_actions_and_the_heartbeat(queue: Any, connect: Connect) -> None:
    ((names,),) = connect().execute("select acknowledgements()").fetchall()
    assert sorted(names) == sorted([*(f"message_{action.name}" for action in ACTIONS), "message_heartbeat"])


def test_every_acknowledgement_has_the_same_pinned_plan(queue: Any, connect: Connect) -> None:
    settings = connect().execute(
        "select distinct"
        " (select array_agg(s order by s) from unnest(p.proconfig) s where s not like 'search_path=%')"
        " from pg_proc p where p.proname = any(acknowledgements())"
        " and p.pronamespace = 'lonnymq'::regnamespace"
    )
    ((pinned,),) = settings.fetchall()
    assert "plan_cache_mode=force_generic_plan" in pinned
    assert "enable_seqscan=off" in pinned
