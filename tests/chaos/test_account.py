"""The account finds what was planted; without that, a scenario that passes would say nothing."""

from pathlib import Path

import psycopg
import pytest

from lonnymq import ClientSettings, ConnectionLost, Queue, WrongIsolationLevel
from tests.chaos import ledger
from tests.chaos.account import Account, Attempt, Evidence, Rules, Sighting, State, judge
from tests.chaos.evidence import gather
from tests.chaos.ledger import Entry, Event, Ledger
from tests.chaos.payloads import payload
from tests.chaos.producer import judged
from tests.conftest import Connect


def made(uid: str, *events: Event, at: float = 0.0, do: str = "work") -> list[Entry]:
    return [Entry(at, event, uid, do=do) for event in (Event.TRIED, *events)]


def worked(*uids: str) -> list[Entry]:
    return [Entry(0.0, event, uid) for uid in uids for event in (Event.STARTED, Event.ENDED)]


GOOD = [
    *made("a", Event.ACKNOWLEDGED),
    *made("b", Event.ACKNOWLEDGED, do="bury"),
    *made("c", Event.ACKNOWLEDGED, do="cancel"),
    *made("d", Event.ACKNOWLEDGED),
    *made("e", Event.ACKNOWLEDGED),
    *made("f", Event.REFUSED),
    *made("g", Event.UNSURE),
    # Killed before it knew.
    *made("h"),
]
FOUND = [
    Sighting("a", State.COMPLETED),
    Sighting("b", State.BURIED, "because"),
    Sighting("c", State.CANCELLED),
    Sighting("d", State.WAITING),
    Sighting("e", State.LEASED),
    Sighting("h", State.COMPLETED),
]


def judge_with(*planted: Sighting, missing: str = "", rules: Rules | None = None) -> Account:
    found = [one for one in FOUND if one.uid != missing] + list(planted)
    return judge(GOOD, worked("a", "h"), Evidence(found), rules or Rules())


def test_a_run_in_which_every_message_has_one_place_has_no_problems() -> None:
    account = judge_with()
    assert account.problems == []
    assert account.claims == {Event.ACKNOWLEDGED: 5, Event.REFUSED: 1, Event.UNSURE: 2}
    assert account.unsure_found == 1
    assert account.states[State.COMPLETED] == 2
    assert "PROBLEM" not in "\n".join(account.lines())


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (Sighting("a", State.COMPLETED), "completed more than once: a"),
        (Sighting("a", State.WAITING), "in several states at once: a (completed, waiting)"),
        (Sighting("d", State.WAITING), "created more than once: d"),
        (Sighting("f", State.WAITING), "found although its create failed without effect: f"),
        (Sighting("z", State.WAITING), "found although no producer tried to create it: z"),
        (Sighting("g", State.COMPLETED), "completed although no handler reached its end: g"),
        (Sighting("g", State.BURIED, "why"), "buried although it did no harm: g (why)"),
        (Sighting("g", State.CANCELLED), "cancelled although nobody asked for it: g"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_message_in_the_wrong_place_is_named(planted: Sighting, problem: str) -> None:
    assert judge_with(planted).problems == [problem]


@pytest.mark.parametrize("uid", "abcde")
def test_an_acknowledged_message_that_is_nowhere_is_lost(uid: str) -> None:
    account = judge_with(missing=uid)
    assert account.problems == [f"acknowledged, and lost: {uid}"]
    assert f"PROBLEM   acknowledged, and lost: {uid}" in account.lines()


def test_only_what_was_acknowledged_in_the_tail_may_be_lost_with_it() -> None:
    entries = [*made("old", Event.ACKNOWLEDGED, at=9.9), *made("new", Event.ACKNOWLEDGED, at=10.5)]
    account = judge(entries, [], Evidence([]), Rules(tail=(10.0, 11.0)))
    assert account.problems == ["acknowledged, and lost: old"]
    assert account.lost_tail == 1
    assert any("1 acknowledged messages lost with the unreplicated tail" in line for line in account.lines())


def test_a_limit_is_broken_by_one_lease_too_many() -> None:
    rules = Rules(caps={"capped": 2})
    one_after_another = [Attempt(str(n), "capped", 1000 * (n // 2), 1000 * (n // 2) + 1000) for n in range(6)]
    others = [Attempt(str(n), "free", 0, 9000) for n in range(6)]

    def problems(*more: Attempt, held: int = 2) -> list[str]:
        attempts = [*one_after_another, *others, *more]
        return judge([], [], Evidence([], attempts, most_held={"capped": held, "free": 6}), rules).problems

    assert problems() == []
    assert problems(held=3) == ["channel 'capped' was seen with 3 leases, its limit is 2"]
    [problem] = problems(Attempt("x", "capped", 1000, None))
    assert problem == "by history channel 'capped' had 3 leases at 1000 ms, its limit is 2"


def test_a_broken_invariant_of_the_queue_is_a_problem() -> None:
    evidence = Evidence([], invariants=["in_flight is wrong: a: 3"])
    assert judge([], [], evidence, Rules()).problems == ["queue_check(): in_flight is wrong: a: 3"]


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
def test_a_create_is_refused_only_if_its_error_proves_it(error: Exception, event: Event) -> None:
    assert judged(error) is event


@pytest.mark.broken_on_purpose
def test_messages_taken_from_the_tables_of_a_real_queue_are_missed(
    dsn: str, connect: Connect, tmp_path: Path
) -> None:
    queue = Queue(dsn, settings=ClientSettings(pool_max_size=1))
    queue.set(history="full")
    queue.channel("a").set(max_attempts=1)
    book = Ledger(str(tmp_path / "ledger"))
    work = Ledger(str(tmp_path / "work"))

    def create(uid: str, do: str = "work") -> int | None:
        book.write(Event.TRIED, [uid], do=do)
        created = queue.enqueue("a", payload(uid, do, size=1000))
        book.write(Event.ACKNOWLEDGED, [uid], is_synced=True)
        return created.id

    def complete(uid: str) -> None:
        [message] = queue.dequeue()
        assert message.payload["uid"] == uid
        work.write(Event.ENDED, [uid])
        message.complete()

    def problems() -> list[str]:
        creates, handlers = (ledger.read(tmp_path / name) for name in ("ledger", "work"))
        return judge(creates, handlers, gather(dsn), Rules()).problems

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
        gathered = {one.uid: one.state for one in gather(dsn).sightings}
        assert gathered == {
            "done": State.COMPLETED,
            "buried": State.BURIED,
            "cancelled": State.CANCELLED,
            "leased": State.LEASED,
            "waiting": State.WAITING,
        }
        assert len(leased) == 1
        assert problems() == []
    thief = connect()
    lost: list[str] = []
    for uid, theft in {
        "done": "delete from history where outcome = 'completed'",
        "buried": "delete from dead",
        "waiting": "delete from message where id = (select max(id) from message)",
    }.items():
        thief.execute(theft)
        lost.append(uid)
        assert problems()[0] == f"acknowledged, and lost: {', '.join(lost)}"
