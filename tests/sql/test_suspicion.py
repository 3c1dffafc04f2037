"""Lost leases: a message is not buried for what another one in the same process may have caused."""

import time

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of

SPENT = "an attempt was spent"
NOT_SPENT = "no attempt was spent"


def lose(queue: Session, leases: list[Reply]) -> None:
    """Expire these leases and let a dequeue end them; it leases nothing, because all channels are paused."""
    queue.expire(leases)
    for channel in {one.channel for one in leases}:
        queue.set(channel, is_paused=True)
    assert queue.dequeue(100) == []
    for channel in {one.channel for one in leases}:
        queue.set(channel, is_paused=False)


def attempts_and_suspicion(queue: Session, message_id: int) -> tuple[int, int] | None:
    """Return (attempts, suspicion), or None if the message is buried."""
    rows = queue.rows("select attempts, suspicion from message where id = %s", message_id)
    return tuple(rows[0]) if rows else None


def lose_with_others(queue: Session, times: int) -> None:
    for _ in range(times):
        lose(queue, queue.dequeue(100, is_shared=True))


@pytest.mark.parametrize("channels", [["a"], ["a", "b"]], ids=["one turn", "two turns"])
def test_a_lease_lost_with_others_spends_no_attempt_but_is_suspect(
    queue: Session, channels: list[str]
) -> None:
    created = [queue.create(channel, max_attempts=2) for channel in channels for _ in range(3)]
    for suspicion in (0, 1, 2, 2, 2):
        leased = queue.dequeue(10, is_shared=True)
        assert sorted(ids_of(leased)) == created
        assert {(one.attempt, one.suspicion) for one in leased} == {(1, suspicion)}
        lose(queue, leased)
    assert {attempts_and_suspicion(queue, one) for one in created} == {(0, 2)}
    assert queue.ask("select count(*) from dead") == 0


def test_a_harmful_message_is_buried_and_the_others_are_not(queue: Session) -> None:
    """Acts as a worker: at suspicion 2 it gives the other messages back and runs this one alone."""
    queue.run("""select queue_set('{"history": "metadata"}')""")
    queue.set("a", max_attempts=5)
    created = queue.fill("a", 10)
    poison = created[4]
    for _ in range(40):
        if not (leased := queue.dequeue(10, is_shared=True)):
            break
        suspect = next((one for one in leased if one.suspicion >= 2), None)
        running = leased if suspect is None else [suspect]
        queue.give_back([one for one in leased if one not in running])
        if suspect is not None:
            assert queue.heartbeat([suspect], is_alone=True) == ["extended"]
        if poison in ids_of(running):
            lose(queue, running)
        else:
            assert set(queue.complete(running)) == {"completed"}
    assert queue.rows("select message_id, attempts from dead") == [(poison, 5)]
    assert queue.ask("select count(*) from message") == 0
    lost = "select count(*) from history where outcome = 'expired' and message_id {} %s"
    assert queue.ask(lost.format("="), poison) == 5
    # Only together with others, and at most twice each.
    assert queue.ask(lost.format("<>"), poison) == 18


def test_a_message_lost_alone_spends_its_earlier_losses_too(queue: Session) -> None:
    created = queue.create("a", max_attempts=10)
    expected = {0: (1, 0), 1: (2, 3), 2: (3, 3)}
    for times, after in expected.items():
        queue.run("update message set attempts = 0, suspicion = 0")
        lose_with_others(queue, times)
        leased = queue.dequeue(1, is_shared=True)
        assert queue.heartbeat(leased, is_alone=True) == ["extended"]
        lose(queue, leased)
        assert attempts_and_suspicion(queue, created) == after
    # From now on a loss alone spends one attempt, and a loss with others still none.
    lose_with_others(queue, 2)
    assert attempts_and_suspicion(queue, created) == (3, 3)
    lose(queue, queue.dequeue())
    assert attempts_and_suspicion(queue, created) == (4, 3)


@pytest.mark.parametrize(("max_attempts", "is_buried"), [(2, True), (3, True), (4, False), (None, False)])
def test_a_message_lost_alone_is_buried_if_its_losses_reach_the_limit(
    queue: Session, max_attempts: int | None, is_buried: bool
) -> None:
    created = queue.create("a", max_attempts=max_attempts)
    lose_with_others(queue, 2)
    lose(queue, queue.dequeue())
    assert attempts_and_suspicion(queue, created) == (None if is_buried else (3, 3))
    found = queue.rows("select attempts, error from dead_list()")
    assert [row[0] for row in found] == ([3] if is_buried else [])
    error = found[0][1] if is_buried else queue.ask("select error from message")
    assert "3 attempts were spent, because the message was lost while it ran alone, and 2 earlier" in error
    assert error.endswith("earlier losses count too")


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("is_channels", [False, True], ids=["own limit", "channel's limit"])
def test_with_max_attempts_1_any_lost_lease_buries(
    queue: Session, is_channels: bool, is_shared: bool
) -> None:
    if is_channels:
        queue.set("a", max_attempts=1)
    created = queue.create("a", max_attempts=None if is_channels else 1)
    lose(queue, queue.dequeue(is_shared=is_shared))
    ((id_, attempts, error),) = queue.rows("select message_id, attempts, error from dead_list()")
    assert (id_, attempts) == (created, 1)
    assert SPENT in error


def test_a_lease_that_is_not_shared_spends_an_attempt_when_lost(queue: Session) -> None:
    created = queue.create("a", max_attempts=3)
    for after in ((1, 0), (2, 0), None):
        lose(queue, queue.dequeue())
        assert attempts_and_suspicion(queue, created) == after


def test_a_lease_lost_with_others_never_buries(queue: Session) -> None:
    created = queue.create("a")
    for _ in range(3):
        queue.defer([queue.lease()])
    leased = queue.dequeue(is_shared=True)
    queue.set("a", max_attempts=2)
    lose(queue, leased)
    assert attempts_and_suspicion(queue, created) == (3, 1)


@pytest.mark.parametrize("suspicion", [1, 2, 3])
def test_a_defer_resets_suspicion_and_a_give_back_keeps_it(queue: Session, suspicion: int) -> None:
    created = queue.create("a")
    lose_with_others(queue, min(suspicion, 2))
    if suspicion == 3:
        lose(queue, queue.dequeue())
    leased = queue.dequeue(is_shared=True)
    assert leased[0].suspicion == suspicion
    queue.give_back(leased)
    attempts, kept = attempts_and_suspicion(queue, created) or (0, 0)
    assert kept == suspicion
    queue.defer(queue.dequeue(is_shared=True))
    assert attempts_and_suspicion(queue, created) == (attempts + 1, 0)


def test_a_redriven_message_has_no_suspicion(queue: Session) -> None:
    created = queue.create("a", max_attempts=3)
    lose_with_others(queue, 2)
    lose(queue, queue.dequeue())
    assert queue.ask("select outcome from dead_redrive(%s)", [created]) == "redriven"
    assert attempts_and_suspicion(queue, created) == (0, 0)


@pytest.mark.parametrize(
    ("is_alone", "is_shared"),
    [(True, False), (False, True), (None, True)],
    ids=["alone", "not alone", "null"],
)
def test_a_heartbeat_can_declare_that_its_messages_run_alone(
    queue: Session, is_alone: bool | None, is_shared: bool
) -> None:
    queue.fill("a", 2)
    first, second = queue.dequeue(2, is_shared=True)
    assert queue.end("message_heartbeat", [first], 30_000, is_alone) == ["extended"]
    shared = dict(queue.rows("select message_id, is_shared from lease_status"))
    assert shared == {first.message_id: is_shared, second.message_id: True}
    # A later heartbeat without is_alone does not change that.
    assert queue.heartbeat([first]) == ["extended"]
    assert dict(queue.rows("select message_id, is_shared from lease")) == shared


def test_history_records_whether_a_lost_lease_spent_an_attempt(queue: Session) -> None:
    queue.run("""select queue_set('{"history": "metadata"}')""")
    queue.create("a")
    for is_shared in (True, False, False):
        lose(queue, queue.dequeue(1, worker="w7", is_shared=is_shared))
    rows = queue.rows("select outcome, attempt, worker, error from history order by id")
    assert [row[:3] for row in rows] == [("expired", attempt, "w7") for attempt in (1, 1, 3)]
    errors = [row[3] for row in rows]
    assert all(f"attempt {row[1]} expired (worker w7): " in row[3] for row in rows)
    assert NOT_SPENT in errors[0]
    assert "2 attempts were spent" in errors[1]
    assert "and an earlier loss counts too" in errors[1]
    assert SPENT in errors[2]
    assert queue.ask("select error from message") == errors[2]


def test_a_lost_claim_buries_none_of_its_messages(queue: Session) -> None:
    created = queue.fill("a", 3, max_attempts=[2, 2, 2])
    for n in range(4):
        # Like a dequeue, it may answer that there is nothing until the next full scan.
        for _ in range(100):
            taken = queue.ask("select messages from claim_take(null, 'job', false, 10, 60000)")
            if taken:
                break
            time.sleep(0.05)
        assert taken == 3, n
        queue.run("update lease set unlock_at = 0")
    queue.set("a", is_paused=True)
    assert queue.dequeue() == []
    assert {attempts_and_suspicion(queue, one) for one in created} == {(0, 2)}


def test_every_view_of_a_message_shows_its_suspicion(queue: Session) -> None:
    created = queue.create("a")
    lose_with_others(queue, 1)
    shown = (
        "select suspicion from message_status",
        "select (message ->> 'suspicion')::integer from message_json",
        "select suspicion from message_peek('a')",
        f"select suspicion from message_show(array[{created}])",
    )
    assert [queue.ask(one) for one in shown] == [1, 1, 1, 1]


def test_a_lease_is_not_shared_if_p_is_shared_is_null(queue: Session) -> None:
    queue.create("a")
    queue.run("select message_dequeue(1, 1000, null, null, null)")
    assert queue.ask("select is_shared from lease") is False


def test_each_of_many_lost_leases_is_judged_by_its_own_flag(session: Open) -> None:
    queue = session()
    created = queue.fill("a", 250, max_attempts=[1 + n % 3 for n in range(250)])
    leased = queue.dequeue(125, is_shared=True) + queue.dequeue(125, is_shared=False)
    lose(queue, leased)
    lose(queue, leased)
    for n, id_ in enumerate(created):
        expected = None if n % 3 == 0 else (0, 1) if n < 125 else (1, 0)
        assert attempts_and_suspicion(queue, id_) == expected, n
