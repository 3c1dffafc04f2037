"""A selection of interleavings for every run of the tests; `make interleavings` has the others."""

from collections.abc import Iterator

import pytest

from tests.interleavings.execution import NotReproducible
from tests.interleavings.laboratory import Laboratory, changed_text
from tests.interleavings.mutants import MUTANTS
from tests.interleavings.scenarios import UnknownScenario, scenario
from tests.interleavings.search import Search, describe

QUICK = (
    "create+dequeue_many,capped,warm",
    "dequeue_many+complete,capped",
    "dequeue_many+cancel,capped",
    "expire+complete,capped",
    "create+sleep,empty",
)
HEAVY = (
    "dequeue+dequeue,new-waiting",
    "dequeue_many+defer,capped,warm",
    "create+channel_delete,empty",
    "complete+cancel_leased,capped",
    "run_now+dequeue_many,due,warm",
)
TRIPLES = (
    "create+dequeue+dequeue,plain,warm",
    "dequeue+complete+dequeue,capped,warm",
    "cancel+dequeue+complete,capped",
)
REPEATED = (
    "cancelled-is-not-refunded",
    "run-now-announces-nothing",
    "create-notifies-before-it-inserts",
    "expiry-does-not-lock",
    "settle-deletes-all-wakes",
)
# These take more than a hundred schedules, or a test of several seconds: `make interleavings` has them.
SLOWLY_KILLED = {
    "channel-name-is-not-kept",
    "default-policy-is-announced-once",
    "leases-of-cancelled-messages-are-not-locked",
    "turn-is-inserted-for-a-deleted-channel",
    "turn-is-inserted-without-a-second-look",
}
QUICKLY_KILLED = [
    one for one in MUTANTS.values() if not one.survives and not one.test and one.name not in SLOWLY_KILLED
]
PARTS = 4


@pytest.fixture
def laboratory(dsn: str) -> Iterator[Laboratory]:
    found = Laboratory(dsn)
    yield found
    found.close()


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(one, marks=pytest.mark.heavy) for one in HEAVY)])
def test_every_schedule_of_two_calls_with_one_preemption_keeps_the_promises(
    laboratory: Laboratory, name: str
) -> None:
    result = Search(laboratory, scenario(name)).enumerate(1)
    assert not result.failed, describe(scenario(name), result.failed[0])
    assert result.is_complete
    assert result.schedules > 10


@pytest.mark.parametrize("name", TRIPLES)
def test_every_order_of_three_calls_keeps_the_promises(laboratory: Laboratory, name: str) -> None:
    result = Search(laboratory, scenario(name)).enumerate(0)
    assert not result.failed, describe(scenario(name), result.failed[0])
    assert result.schedules == 6


def test_a_session_that_is_killed_anywhere_leaves_no_trace(laboratory: Laboratory) -> None:
    """The other session has run since, and may have met its locks."""
    search = Search(laboratory, scenario("dequeue_many+complete,capped"))
    steps = len(search.replay("").steps)
    for place in range(1, steps // 2, 4):
        trace = search.replay(",".join([*"0" * place, "1", "0k"]))
        assert not trace.problems, describe(search.scenario, trace)
        assert trace.steps[place + 1].where.startswith("killed at ")


def test_a_schedule_that_is_not_possible_is_refused(laboratory: Laboratory) -> None:
    search = Search(laboratory, scenario("complete+cancel_leased,capped"))
    with pytest.raises(NotReproducible, match="0,0,1r: possible is only"):
        search.replay("0,0,1r")
    assert not search.replay("0,0,1").problems


def test_a_scenario_that_does_not_exist_is_refused() -> None:
    for name in ("", "create", "create+sing,plain", "create,nowhere", "create,plain,hot"):
        with pytest.raises(UnknownScenario):
            scenario(name)


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(PARTS))
def test_every_missing_rule_is_noticed(laboratory: Laboratory, part: int) -> None:
    mutants = QUICKLY_KILLED[part::PARTS]
    assert [one.name for one in mutants if one.kill(laboratory, bound=1).trace is None] == []


@pytest.mark.parametrize("name", REPEATED)
def test_a_missing_rule_is_noticed_and_the_schedule_repeats_it(laboratory: Laboratory, name: str) -> None:
    mutant = MUTANTS[name]
    killed = mutant.kill(laboratory, bound=1)
    assert killed.trace is not None
    assert killed.trace.problems
    laboratory.change(mutant.changes)
    again = Search(laboratory, scenario(killed.scenario)).replay(killed.trace.schedule)
    assert [step.point for step in again.steps] == [step.point for step in killed.trace.steps]
    assert again.replies == killed.trace.replies


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_still_applies(name: str) -> None:
    """If this fails, the file has changed: find what expresses the rule now."""
    for function, replacements in MUTANTS[name].changes.items():
        assert changed_text(function, replacements)
    assert all(scenario(one).is_possible for one in MUTANTS[name].scenarios)
