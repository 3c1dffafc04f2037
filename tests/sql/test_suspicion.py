"""Lost leases: a message is not buried for what another one in the same process may have done."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of

ALONE = "an attempt was spent"
IN_COMPANY = "no attempt was spent"


def lose(queue: Session, leases: list[Reply]) -> None:
    """Their worker dies, and the next dequeue ends the leases; it takes nothing, because all are paused."""
    queue.expire(leases)
    for channel in {one.channel for one in leases}:
        queue.set(channel, is_paused=True)
    assert queue.dequeue(100) == []
    for channel in {one.channel for one in leases}:
        queue.set(channel, is_paused=False)


def standing(queue: Session, message_id: int) -> tuple[int, int] | None:
    """(attempts, suspicion), or None once it is dead."""
    rows = queue.rows("select attempts, suspicion from message where id = %s", message_id)
    return tuple(rows[0]) if rows else None


def lose_in_company(queue: Session, times: int) -> None:
    for _ in range(times):
        lose(queue, queue.dequeue(100, is_shared=True))


@pytest.mark.parametrize("channels", [["a"], ["a", "b"]], ids=["one turn", "two turns"])
def test_leases_lost_in_company_spend_no_attempt_and_raise_suspicion(
    queue: Session, channels: list[str]
) -> None:
    made = [queue.create(channel, max_attempts=2) for channel in channels for _ in range(3)]
    for suspicion in (0, 1, 2, 2, 2):
        leased = queue.dequeue(10, is_shared=True)
        assert sorted(ids_of(leased)) == made
        assert {(one.attempt, one.suspicion) for one in leased} == {(1, suspicion)}
        lose(queue, leased)
    assert {standing(queue, one) for one in made} == {(0, 2)}
    assert queue.ask("select count(*) from dead") == 0


def test_a_poison_message_is_buried_and_the_nine_in_its_company_never(queue: Session) -> None:
    """As a worker does: from suspicion 2 on it says that a message runs alone, and gives the others back."""
    queue.run("""select queue_set('{"history": "metadata"}')""")
    queue.set("a", max_attempts=5)
    made = queue.fill("a", 10)
    poison = made[4]
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
    # Only in company, and no more than twice each.
    assert queue.ask(lost.format("<>"), poison) == 18


def test_earlier_losses_become_attempts_when_a_message_is_lost_alone(queue: Session) -> None:
    made = queue.create("a", max_attempts=10)
    expected = {0: (1, 0), 1: (2, 3), 2: (3, 3)}
    for times, after in expected.items():
        queue.run("update message set attempts = 0, suspicion = 0")
        lose_in_company(queue, times)
        leased = queue.dequeue(1, is_shared=True)
        assert queue.heartbeat(leased, is_alone=True) == ["extended"]
        lose(queue, leased)
        assert standing(queue, made) == after
    # From now on each loss alone is one attempt, and one in company still none.
    lose_in_company(queue, 2)
    assert standing(queue, made) == (3, 3)
    lose(queue, queue.dequeue())
    assert standing(queue, made) == (4, 3)


@pytest.mark.parametrize(("max_attempts", "is_buried"), [(2, True), (3, True), (4, False), (None, False)])
def test_a_message_lost_alone_is_buried_if_all_its_losses_reach_the_limit(
    queue: Session, max_attempts: int | None, is_buried: bool
) -> None:
    made = queue.create("a", max_attempts=max_attempts)
    lose_in_company(queue, 2)
    lose(queue, queue.dequeue())
    assert standing(queue, made) == (None if is_buried else (3, 3))
    found = queue.rows("select attempts, error from dead_list()")
    assert [row[0] for row in found] == ([3] if is_buried else [])
    error = found[0][1] if is_buried else queue.ask("select error from message")
    assert "3 attempts were spent, because the message was lost while it ran alone, and 2 earlier" in error
    assert error.endswith("earlier losses count too")


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("is_channels", [False, True], ids=["own limit", "channel's limit"])
def test_one_attempt_at_most_means_that_any_lost_lease_buries(
    queue: Session, is_channels: bool, is_shared: bool
) -> None:
    if is_channels:
        queue.set("a", max_attempts=1)
    made = queue.create("a", max_attempts=None if is_channels else 1)
    lose(queue, queue.dequeue(is_shared=is_shared))
    ((id_, attempts, error),) = queue.rows("select message_id, attempts, error from dead_list()")
    assert (id_, attempts) == (made, 1)
    assert ALONE in error


def test_a_client_that_says_nothing_spends_an_attempt_at_each_loss(queue: Session) -> None:
    made = queue.create("a", max_attempts=3)
    for after in ((1, 0), (2, 0), None):
        lose(queue, queue.dequeue())
        assert standing(queue, made) == after


def test_a_lease_lost_in_company_does_not_bury_what_has_had_its_attempts(queue: Session) -> None:
    made = queue.create("a")
    for _ in range(3):
        queue.defer([queue.lease()])
    leased = queue.dequeue(is_shared=True)
    queue.set("a", max_attempts=2)
    lose(queue, leased)
    assert standing(queue, made) == (3, 1)


@pytest.mark.parametrize("suspicion", [1, 2, 3])
def test_a_defer_ends_suspicion_and_giving_back_keeps_it(queue: Session, suspicion: int) -> None:
    made = queue.create("a")
    lose_in_company(queue, min(suspicion, 2))
    if suspicion == 3:
        lose(queue, queue.dequeue())
    leased = queue.dequeue(is_shared=True)
    assert leased[0].suspicion == suspicion
    queue.give_back(leased)
    attempts, kept = standing(queue, made) or (0, 0)
    assert kept == suspicion
    queue.defer(queue.dequeue(is_shared=True))
    assert standing(queue, made) == (attempts + 1, 0)


def test_a_redriven_message_is_suspected_of_nothing(queue: Session) -> None:
    made = queue.create("a", max_attempts=3)
    lose_in_company(queue, 2)
    lose(queue, queue.dequeue())
    assert queue.ask("select outcome from dead_redrive(%s)", [made]) == "redriven"
    assert standing(queue, made) == (0, 0)


@pytest.mark.parametrize(
    ("is_alone", "is_shared"), [(True, False), (False, True), (None, True)], ids=["alone", "no", "null"]
)
def test_a_heartbeat_says_that_its_messages_run_alone(
    queue: Session, is_alone: bool | None, is_shared: bool
) -> None:
    queue.fill("a", 2)
    first, second = queue.dequeue(2, is_shared=True)
    assert queue.end("message_heartbeat", [first], 30_000, is_alone) == ["extended"]
    shared = dict(queue.rows("select message_id, is_shared from lease_status"))
    assert shared == {first.message_id: is_shared, second.message_id: True}
    # A later one that does not say so changes nothing.
    assert queue.heartbeat([first]) == ["extended"]
    assert dict(queue.rows("select message_id, is_shared from lease")) == shared


def test_history_has_each_lost_lease_and_whether_it_spent_an_attempt(queue: Session) -> None:
    queue.run("""select queue_set('{"history": "metadata"}')""")
    queue.create("a")
    for is_shared in (True, False, False):
        lose(queue, queue.dequeue(1, worker="w7", is_shared=is_shared))
    rows = queue.rows("select outcome, attempt, worker, error from history order by id")
    assert [row[:3] for row in rows] == [("expired", attempt, "w7") for attempt in (1, 1, 3)]
    errors = [row[3] for row in rows]
    assert all(f"attempt {row[1]} expired (worker w7): " in row[3] for row in rows)
    assert IN_COMPANY in errors[0]
    assert "2 attempts were spent" in errors[1]
    assert "and an earlier loss counts too" in errors[1]
    assert ALONE in errors[2]
    assert queue.ask("select error from message") == errors[2]


def test_a_batch_of_a_claim_that_dies_buries_none_of_its_messages(queue: Session) -> None:
    made = queue.fill("a", 3, max_attempts=[2, 2, 2])
    for n in range(4):
        assert queue.ask("select messages from claim_take(null, 'job', false, 10, 60000)") == 3, n
        queue.run("update lease set unlock_at = 0")
    queue.set("a", is_paused=True)
    assert queue.dequeue() == []
    assert {standing(queue, one) for one in made} == {(0, 2)}


def test_suspicion_is_shown_wherever_a_message_is(queue: Session) -> None:
    made = queue.create("a")
    lose_in_company(queue, 1)
    shown = (
        "select suspicion from message_status",
        "select (message ->> 'suspicion')::integer from message_json",
        "select suspicion from message_peek('a')",
        f"select suspicion from message_show(array[{made}])",
    )
    assert [queue.ask(one) for one in shown] == [1, 1, 1, 1]


def test_a_null_means_that_the_lease_is_not_shared(queue: Session) -> None:
    queue.create("a")
    queue.run("select message_dequeue(1, 1000, null, null, null)")
    assert queue.ask("select is_shared from lease") is False


def test_many_lost_at_once_are_each_judged_by_their_own_lease(session: Open) -> None:
    queue = session()
    made = queue.fill("a", 250, max_attempts=[1 + n % 3 for n in range(250)])
    leased = queue.dequeue(125, is_shared=True) + queue.dequeue(125, is_shared=False)
    lose(queue, leased)
    lose(queue, leased)
    for n, id_ in enumerate(made):
        expected = None if n % 3 == 0 else (0, 1) if n < 125 else (1, 0)
        assert standing(queue, id_) == expected, n
