"""The figures of windows: small cases by hand, and random histories against a reference in plain Python."""

import random
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lonnymq.errors import InvalidArgument
from tests.pipeline import reference_windows
from tests.pipeline.frames import attempts_frame, by_window, dated_policies_frame, day_of, policies_frame
from tests.pipeline.reference_windows import DAY_MS, Attempt, ReferencePolicy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = round(datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000
MIDNIGHT = NOON + DAY_MS // 2


def compute(
    spark: "SparkSession", history: list[Attempt], policies: list[ReferencePolicy], **options: Any
) -> dict[tuple[str, int], dict[str, Any]]:
    from lonnymq.pipeline import windows

    frame = windows(attempts_frame(spark, history), policies_frame(spark, policies), **options)
    return by_window(frame)


def attempt(channel: str, due: int, leased: int, ended: int, **more: Any) -> Attempt:
    """One that was due when it was created, and completed unless progress otherwise."""
    return Attempt(channel, due, due, leased, ended, **{"outcome": "completed", **more})


def test_figures_of_a_small_history_equal_those_computed_by_hand(spark: "SparkSession") -> None:
    history = [
        # a: three messages at once, worked one after the other; the second fails once.
        attempt("a", NOON, NOON + 100, NOON + 1_100),
        attempt("a", NOON, NOON + 1_100, NOON + 1_400, outcome="deferred"),
        attempt("a", NOON, NOON + 1_400, NOON + 5_400),
        # Its retry.
        Attempt("a", NOON, NOON + 11_400, NOON + 12_000, NOON + 12_500, "completed", 2),
        # b: scheduled long before, so it waits from its scheduled time; then exceeds the cap of 1.
        Attempt("b", NOON - DAY_MS, NOON + 10_000, NOON + 11_000, NOON + 13_000, "completed"),
        Attempt("b", NOON - DAY_MS, NOON + 10_000, NOON + 12_000, NOON + 14_000, "buried"),
        # c: two releases in too short a time, and two cancelled messages.
        attempt("c", NOON, NOON + 20_000, NOON + 20_001),
        attempt("c", NOON, NOON + 20_400, NOON + 20_401, outcome="expired"),
        Attempt("c", NOON, NOON, None, NOON + 59_999, "cancelled", 0),
        Attempt("c", NOON, NOON + DAY_MS, None, NOON + 30_000, "cancelled", 0),
        # d: waits in four windows, two of which have no events; weight 3.
        attempt("d", NOON + 30_000, NOON + 3 * MINUTE + 5, NOON + 3 * MINUTE + 5),
    ]
    policies = [
        ReferencePolicy("b", max_concurrency=1),
        ReferencePolicy("c", interval=500),
        ReferencePolicy("d", weight=3),
    ]
    rows = compute(spark, history, policies)
    assert sorted(rows) == sorted(
        [("a", NOON), ("b", NOON), ("c", NOON), *(("d", NOON + n * MINUTE) for n in range(4))]
    )
    a, b, c, d = (rows[name, NOON] for name in "abcd")
    expected_a = {
        "arrivals": 3,
        "releases": 4,
        "retries": 1,
        "completed": 3,
        "deferred": 1,
        "failures": 1,
        # The middle of the bucket of 600 ms, which are 600 to 607.
        "wait_p50_ms": 604,
        "wait_p95_ms": 1_400,
        "wait_p99_ms": 1_400,
        "wait_max_ms": 1_400,
        "wait_total_ms": 3_200,
        "run_p50_ms": 502,
        "run_p95_ms": 4_000,
        "run_max_ms": 4_000,
        "run_total_ms": 5_800,
        "backlog_low": 0,
        "backlog_peak": 3,
        "backlog_end": 0,
        "concurrency_peak": 1,
        "gap_min_ms": 300,
        "gaps_too_small": 0,
        "is_over_cap": False,
        "share": 0.5,
        # The weights are 1, 1, 1 and 3.
        "entitled_share": pytest.approx(1 / 6),
        "excess_share": pytest.approx(1 / 3),
        # b and c have limits of their own, and d's wait belongs to the window of its release.
        "others_wait_ms": 0,
        "blame_ms": 0.0,
    }
    assert {name: a[name] for name in expected_a} == expected_a
    assert (b["arrivals"], b["wait_p50_ms"], b["wait_max_ms"], b["buried"]) == (2, 1_004, 2_000, 1)
    assert (b["concurrency_peak"], b["max_concurrency"], b["is_over_cap"]) == (2, 1, True)
    assert (c["gap_min_ms"], c["release_interval_ms"], c["gaps_too_small"]) == (400, 500, 1)
    assert (c["arrivals"], c["cancelled"], c["expired"], c["failures"]) == (3, 2, 1, 1)
    assert (c["backlog_peak"], c["concurrency_peak"]) == (3, 1)
    assert (d["arrivals"], d["releases"], d["entitled_share"], d["backlog_end"]) == (1, 0, 0.5, 1)
    quiet, last = rows["d", NOON + MINUTE], rows["d", NOON + 3 * MINUTE]
    assert (quiet["backlog_low"], quiet["backlog_peak"], quiet["releases"], quiet["wait_max_ms"]) == (
        1,
        1,
        0,
        None,
    )
    # An attempt that began and ended in the same millisecond counts as well.
    assert (last["wait_max_ms"], last["run_max_ms"], last["concurrency_peak"]) == (150_005, 0, 1)


def test_attempts_that_cross_midnight_count_on_both_days(spark: "SparkSession") -> None:
    history = [
        attempt("a", MIDNIGHT - 90_000, MIDNIGHT - 30_000, MIDNIGHT + 90_000),
        attempt("a", MIDNIGHT - 10_000, MIDNIGHT + 70_000, MIDNIGHT + 2 * DAY_MS + 1),
        # A burst of two, then 1,000 ms must pass; releases of the day before count.
        *(attempt("b", MIDNIGHT - 900, MIDNIGHT + at, MIDNIGHT + at) for at in (-900, -600, 100, 150)),
        # Ends exactly at midnight, so it does not run on the new day.
        attempt("c", MIDNIGHT - 2_000, MIDNIGHT - 1_000, MIDNIGHT),
    ]
    rows = compute(spark, history, [ReferencePolicy("b", interval=1_000, burst=2)], window_s=3600)
    before, after = MIDNIGHT - 60 * MINUTE, MIDNIGHT
    assert [rows["a", at]["concurrency_peak"] for at in (before, after)] == [1, 2]
    assert [rows["a", at]["backlog_peak"] for at in (before, after)] == [1, 1]
    hours = [at for channel, at in rows if channel == "a"]
    assert len(hours) == 2 + 48
    assert (rows["b", before]["gap_min_ms"], rows["b", after]["gap_min_ms"]) == (None, 750)
    assert rows["b", after]["gaps_too_small"] == 1
    assert (rows["c", after]["completed"], rows["c", after]["concurrency_peak"]) == (1, 0)


def test_a_message_that_is_tried_again_waits_once_at_a_time(spark: "SparkSession") -> None:
    history = [
        # Due at noon. Its lease expires without spending an attempt: it appears to be due since noon again.
        Attempt("a", NOON, NOON, NOON + 1_000, NOON + 31_000, "expired", 1, message=1),
        Attempt("a", NOON, NOON, NOON + 33_000, NOON + 34_000, "expired", 1, message=1),
        # Deferred with a priority, which hides until when.
        Attempt("a", NOON, NOON, NOON + 34_500, NOON + 35_000, "deferred", 2, message=1),
        Attempt("a", NOON, -5, NOON + 35_200, NOON + 35_300, "completed", 3, message=1),
        # After a failover, an id is issued again, to another message.
        Attempt("b", NOON, NOON, NOON + 1_000, NOON + 31_000, "expired", 1, message=1),
        Attempt("b", NOON + 9_000, NOON + 9_000, NOON + 40_000, NOON + 41_000, "completed", 1, message=1),
    ]
    rows = compute(spark, history, [])
    row, other = rows["a", NOON], rows["b", NOON]
    assert (other["arrivals"], other["wait_total_ms"], other["backlog_peak"]) == (2, 1_000 + 31_000, 1)
    assert (row["arrivals"], row["releases"], row["retries"]) == (1, 4, 2)
    assert (row["backlog_peak"], row["backlog_low"], row["backlog_end"]) == (1, 0, 0)
    assert (row["wait_total_ms"], row["wait_max_ms"]) == (1_000 + 2_000 + 500 + 200, 2_000)


def test_jains_index_covers_channels_with_a_backlog_throughout(spark: "SparkSession") -> None:
    from lonnymq.pipeline import fairness, windows

    def hungry(channel: str, served: int) -> list[Attempt]:
        """A backlog for two minutes from noon on, and `served` releases in the first minute."""
        last = attempt(channel, NOON, NOON + 2 * MINUTE, NOON + 2 * MINUTE)
        return [attempt(channel, NOON, NOON + n * 1_000, NOON + n * 1_000 + 1) for n in range(served)] + [
            last
        ]

    sated = [
        attempt("sated", NOON + 5, NOON + 6, NOON + 7),
        attempt("sated", NOON + 50_000, NOON + 50_001, NOON + 50_002),
    ]
    history = hungry("a", 10) + hungry("b", 30) + hungry("c", 20) + hungry("capped", 1) + sated
    policies = [ReferencePolicy("c", weight=2), ReferencePolicy("capped", max_concurrency=1)]
    frame = fairness(windows(attempts_frame(spark, history), policies_frame(spark, policies)))
    first = frame.orderBy("window_start").first()
    assert first is not None
    # Releases per weight: 10, 30 and 10.
    assert first.jain_index == pytest.approx(50**2 / (3 * (100 + 900 + 100)))
    assert (first.hungry_channels, first.channels, first.releases) == (3, 5, 63)
    # b had 30 of 63 releases and was entitled to 1 of 6. Those of a, c and sated did not exceed their share.
    assert (first.noisiest_channel, first.noisiest_excess_share) == ("b", pytest.approx(30 / 63 - 1 / 6))
    waited = sum(n * 1_000 for n in range(10)) + sum(n * 1_000 for n in range(20)) + 2
    assert first.noisiest_blame_ms == pytest.approx((30 / 63 - 1 / 6) * waited)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Attempt], list[ReferencePolicy]]:
    """A few channels around midnight, with every outcome, ties, and times at the edges of windows."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    size = draw(st.integers(1, 60))
    policies = [
        ReferencePolicy("limited", 1, None, choose.choice([300, 1_000, 20_000]), choose.choice([1, 2, 3])),
        ReferencePolicy("capped", choose.choice([1, 4]), choose.choice([1, 2])),
        ReferencePolicy("heavy", 5),
    ]
    history: list[Attempt] = []
    while len(history) < size:
        history += message_history(choose, number=len(history))
    return history, policies


def message_history(choose: random.Random, number: int) -> list[Attempt]:
    """The attempts of one message, each after the one before it."""
    # Coarse steps produce ties, and events at the edges of windows.
    step = choose.choice([1, 500, 15_000, 60_000])

    def pause(*choices: int) -> int:
        return choose.choice(choices) // step * step

    channel = choose.choice(["plain", "limited", "capped", "heavy"])
    created = MIDNIGHT + choose.randrange(-600_000, 600_000) // step * step
    dequeue = created + choose.choice([0, 0, -10_000, 30_000, -created - 5])
    last = choose.choice(["completed", "completed", "completed", "buried", "cancelled", "expired"])
    outcomes = [*choose.choices(["deferred", "expired"], k=choose.choice([0, 0, 0, 1, 2, 3])), last]
    found: list[Attempt] = []
    attempt, free = 1, created
    for outcome in outcomes:
        leased: int | None = max(dequeue, free) + pause(0, 1, 400, 60_000, 200_000)
        assert leased is not None
        ended = leased + pause(0, 1, 700, 90_000)
        if outcome == "cancelled":
            attempt, ended, leased = attempt - 1 if found else choose.choice([0, 0, 1]), leased, None
            if not found and choose.random() < 0.5:
                ended = created
        found.append(Attempt(channel, created, dequeue, leased, ended, outcome, attempt, number))
        # An expiry may spend no attempt, and keeps the message's place. So does a retry with a priority.
        attempt += 1 if outcome == "deferred" else choose.choice([0, 1])
        dequeue = ended + pause(0, 30_000) if outcome == "deferred" and choose.random() < 0.7 else dequeue
        free = ended
    return found


@pytest.mark.timeout(600)
@settings(
    # The first example is always the simplest, so only the second one is random.
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(cases=st.lists(histories(), min_size=36, max_size=36))
def test_random_histories_give_the_figures_of_the_reference(
    spark: "SparkSession", cases: list[tuple[list[Attempt], list[ReferencePolicy]]]
) -> None:
    """Planning a job takes longer than running it, so many histories share one, each in its own week."""
    from lonnymq.pipeline import windows

    week = 7 * DAY_MS
    attempts: list[Attempt] = []
    policies: list[tuple[date, ReferencePolicy]] = []
    expected: dict[tuple[str, int], dict[str, Any]] = {}
    for number, (history, rules) in enumerate(cases):
        # Around midnight, where days meet, or around seven o'clock, where only parts of a line meet.
        shift = number * week + number % 2 * 7 * 60 * MINUTE
        moved = [
            Attempt(
                one.channel,
                one.created + shift,
                one.dequeue + shift,
                None if one.leased is None else one.leased + shift,
                one.ended + shift,
                one.outcome,
                one.attempt,
                None if one.message is None else 1_000 * number + one.message,
            )
            for one in history
        ]
        attempts += moved
        policies += [(day_of(MIDNIGHT + shift - 3 * DAY_MS), rule) for rule in rules]
        expected |= reference_windows.windows(moved, rules, MINUTE)
    found = by_window(windows(attempts_frame(spark, attempts), dated_policies_frame(spark, policies)))
    assert sorted(found) == sorted(expected)
    for key, row in expected.items():
        assert found[key] == {name: expected_value(name, value) for name, value in row.items()}, key


def expected_value(name: str, exact: Any) -> Any:
    """What must be equal to a figure: a percentile is exact below 128 ms, and otherwise within 1/128."""
    if re.search(r"_p\d\d_ms", name) and exact is not None:
        return pytest.approx(exact, rel=1 / 128, abs=0)
    return pytest.approx(exact) if isinstance(exact, float) else exact


@pytest.mark.parametrize("wrong", [0, -60, 7, 50_000, True, 1.5])
def test_a_window_that_does_not_divide_a_day_is_refused(wrong: Any) -> None:
    from lonnymq.pipeline.windows import check_window_s

    with pytest.raises(
        InvalidArgument, match="window_s must be a whole number of seconds that divides a day"
    ):
        check_window_s(wrong)
