"""The account finds planted losses, duplicates and exceeded limits, so a passed scenario proves something."""

from pathlib import Path

import psycopg
import pytest

from lonnymq import ClientSettings, ConnectionLost, Queue, WrongIsolationLevel
from tests.chaos import ledger
from tests.chaos.account import Account, Attempt, Evidence, Observation, Rules, State, compare
from tests.chaos.evidence import gather
from tests.chaos.ledger import Entry, Event, Ledger
from tests.chaos.payloads import payload
from tests.chaos.producer import classify_error
from tests.conftest import Connect


def create_entries(uid: str, *events: Event, at: float = 0.0, do: str = "work") -> list[Entry]:
    return [Entry(at, event, uid, do=do) for event in (Event.TRIED, *events)]


def handler_entries(*uids: str) -> list[Entry]:
    return [Entry(0.0, event, uid) for uid in uids for event in (Event.STARTED, Event.ENDED)]


CREATES = [
    *create_entries("a", Event.ACKNOWLEDGED),
    *create_entries("b", Event.ACKNOWLEDGED, do="bury"),
    *create_entries("c", Event.ACKNOWLEDGED, do="cancel"),
    *create_entries("d", Event.ACKNOWLEDGED),
    *create_entries("e", Event.ACKNOWLEDGED),
    *create_entries("f", Event.REFUSED),
    *create_entries("g", Event.UNSURE),
    # The producer was killed before it got the answer.
    *create_entries("h"),
]
FOUND = [
    Observation("a", State.COMPLETED),
    Observation("b", State.BURIED, "because"),
    Observation("c", State.CANCELLED),
    Observation("d", State.WAITING),
    Observation("e", State.LEASED),
    Observation("h", State.COMPLETED),
]


def compare_with(*planted: Observation, missing: str = "", rules: Rules | None = None) -> Account:
    found = [one for one in FOUND if one.uid != missing] + list(planted)
    return compare(CREATES, handler_entries("a", "h"), Evidence(found), rules or Rules())


def test_a_run_without_losses_or_duplicates_has_no_problems() -> None:
    account = compare_with()
    assert account.problems == []
    assert account.outcomes == {Event.ACKNOWLEDGED: 5, Event.REFUSED: 1, Event.UNSURE: 2}
    assert account.unsure_found == 1
    assert account.states[State.COMPLETED] == 2
    assert "PROBLEM" not in "\n".join(account.lines())


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (Observation("a", State.COMPLETED), "completed more than once: a"),
        (Observation("a", State.WAITING), "in several states: a (completed, waiting)"),
        (Observation("d", State.WAITING), "created more than once: d"),
        (Observation("f", State.WAITING), "found although its create was refused: f"),
        (Observation("z", State.WAITING), "found although no producer tried to create it: z"),
        (Observation("g", State.COMPLETED), "completed although no handler finished: g"),
        (Observation("g", State.BURIED, "why"), "buried although its payload does not ask for it: g (why)"),
        (Observation("g", State.CANCELLED), "cancelled although no producer cancelled it: g"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_message_in_a_wrong_state_is_named(planted: Observation, problem: str) -> None:
    assert compare_with(planted).problems == [problem]


@pytest.mark.parametrize("uid", "abcde")
def test_an_acknowledged_message_that_is_missing_is_lost(uid: str) -> None:
    account = compare_with(missing=uid)
    assert account.problems == [f"acknowledged but lost: {uid}"]
    assert f"PROBLEM   acknowledged but lost: {uid}" in account.lines()


def test_only_messages_acknowledged_in_the_tail_may_be_lost() -> None:
    entries = [
        *create_entries("old", Event.ACKNOWLEDGED, at=9.9),
        *create_entries("new", Event.ACKNOWLEDGED, at=10.5),
    ]
    account = compare(entries, [], Evidence([]), Rules(tail=(10.0, 11.0)))
    assert account.problems == ["acknowledged but lost: old"]
    assert account.lost_tail == 1
    assert any("1 acknowledged messages lost with the unreplicated tail" in line for line in account.lines())


def test_one_lease_too_many_exceeds_the_limit() -> None:
    rules = Rules(caps={"capped": 2})
    one_after_another = [Attempt(str(n), "capped", 1000 * (n // 2), 1000 * (n // 2) + 1000) for n in range(6)]
    others = [Attempt(str(n), "free", 0, 9000) for n in range(6)]

    def problems(*more: Attempt, leased: int = 2) -> list[str]:
        attempts = [*one_after_another, *others, *more]
        return compare(
            [], [], Evidence([], attempts, max_leased={"capped": leased, "free": 6}), rules
        ).problems

    assert problems() == []
    assert problems(leased=3) == ["channel 'capped' was seen with 3 leases; its limit is 2"]
    [problem] = problems(Attempt("x", "capped", 1000, None))
    assert problem == "in history, channel 'capped' had 3 leases at 1000 ms; its limit is 2"


def test_a_broken_invariant_of_the_queue_is_a_problem() -> None:
    evidence = Evidence([], invariants=["in_flight is wrong: a: 3"])
    assert compare([], [], evidence, Rules()).problems == ["queue_check(): in_flight is wrong: a: 3"]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ConnectionLost("x", may_have_happened=True), Event.UNSURE),
        (ConnectionLost("x", may_have_happened=False), Event.REFUSED),
        (WrongIsolationLevel("x"), Event.REFUSED),
        (psycopg.errors.DiskFull("x"), Event.REFUSED),
        (psycopg.errors.AdminShutdown("x"), Event.UNSURE),
        (psycopg.OperationalError("x"), Event.UNSURE),
        (OSError("x"), Event.UNSURE),
    ],
    ids=repr,
)
def test_a_create_counts_as_refused_only_if_its_error_proves_it(error: Exception, event: Event) -> None:
    assert classify_error(error) is event


@pytest.mark.broken_on_purpose
def test_messages_deleted_from_the_tables_are_reported_as_lost(
    dsn: str, connect: Connect, tmp_path: Path
) -> None:
    queue = Queue(dsn, settings=ClientSettings(pool_max_size=1))
    queue.set(history="full")
    queue.channel("a").set(max_attempts=1)
    creates = Ledger(str(tmp_path / "ledger"))
    handlers = Ledger(str(tmp_path / "work"))

    def create(uid: str, do: str = "work") -> int | None:
        creates.write(Event.TRIED, [uid], do=do)
        created = queue.enqueue("a", payload(uid, do, size=1000))
        creates.write(Event.ACKNOWLEDGED, [uid], is_synced=True)
        return created.id

    def complete(uid: str) -> None:
        [message] = queue.dequeue()
        assert message.payload["uid"] == uid
        handlers.write(Event.ENDED, [uid])
        message.complete()

    def problems() -> list[str]:
        tried, handled = (ledger.read(tmp_path / name) for name in ("ledger", "work"))
        return compare(tried, handled, gather(dsn), Rules()).problems

    with queue:
        create("done")
        complete("done")
        create("buried", "bury")
        queue.dequeue()[0].bury(error="it is asked for")
        cancelled = create("cancelled", "cancel")
        assert cancelled is not None
        queue.cancel([cancelled])
        create("leased")
        leased = queue.dequeue()
        create("waiting")
        gathered = {one.uid: one.state for one in gather(dsn).observations}
        assert gathered == {
            "done": State.COMPLETED,
            "buried": State.BURIED,
            "cancelled": State.CANCELLED,
            "leased": State.LEASED,
            "waiting": State.WAITING,
        }
        assert len(leased) == 1
        assert problems() == []
    connection = connect()
    lost: list[str] = []
    for uid, delete in {
        "done": "delete from history where outcome = 'completed'",
        "buried": "delete from dead",
        "waiting": "delete from message where id = (select max(id) from message)",
    }.items():
        connection.execute(delete)
        lost.append(uid)
        assert problems()[0] == f"acknowledged but lost: {', '.join(lost)}"
