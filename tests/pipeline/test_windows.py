"""Each figure of a window: by hand on small cases, and against plain Python on random histories."""

import random
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lonnymq.errors import InvalidArgument
from tests.pipeline import straightforward
from tests.pipeline.frames import attempts_frame, by_window, dated_policies_frame, day_of, policies_frame
from tests.pipeline.straightforward import DAY, Attempt, Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = round(datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000
MIDNIGHT = NOON + DAY // 2


def computed(
    spark: "SparkSession", history: list[Attempt], policies: list[Policy], **options: Any
) -> dict[tuple[str, int], dict[str, Any]]:
    from lonnymq.pipeline import windows

    frame = windows(attempts_frame(spark, history), policies_frame(spark, policies), **options)
    return by_window(frame)


def done(channel: str, due: int, leased: int, ended: int, **more: Any) -> Attempt:
    """One that was due when it was created, and completed unless said otherwise."""
    return Attempt(channel, due, due, leased, ended, **{"outcome": "completed", **more})


def test_each_figure_of_a_small_history_is_what_the_hand_computes(spark: "SparkSession") -> None:
    history = [
        # a: three messages at once, worked one after the other; the second fails once.
        done("a", NOON, NOON + 100, NOON + 1_100),
        done("a", NOON, NOON + 1_100, NOON + 1_400, outcome="deferred"),
        done("a", NOON, NOON + 1_400, NOON + 5_400),
        # Its retry, prioritised: due since it was deferred is not known then, only since it was created.
        Attempt("a", NOON, NOON + 11_400, NOON + 12_000, NOON + 12_500, "completed", 2),
        # b: scheduled long before, it waits from its time on; then over the cap of 1 for a moment.
        Attempt("b", NOON - DAY, NOON + 10_000, NOON + 11_000, NOON + 13_000, "completed"),
        Attempt("b", NOON - DAY, NOON + 10_000, NOON + 12_000, NOON + 14_000, "buried"),
        # c: too soon after one another; and what was cancelled.
        done("c", NOON, NOON + 20_000, NOON + 20_001),
        done("c", NOON, NOON + 20_400, NOON + 20_401, outcome="expired"),
        Attempt("c", NOON, NOON, None, NOON + 59_999, "cancelled", 0),
        Attempt("c", NOON, NOON + DAY, None, NOON + 30_000, "cancelled", 0),
        # d: waits for four minutes, in two of which nothing happens; weight 3.
        done("d", NOON + 30_000, NOON + 3 * MINUTE + 5, NOON + 3 * MINUTE + 5),
    ]
    policies = [Policy("b", max_concurrency=1), Policy("c", interval=500), Policy("d", weight=3)]
    rows = computed(spark, history, policies)
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
        "wait_p50_ms": 600,
        "wait_p95_ms": 1_400,
        "wait_p99_ms": 1_400,
        "wait_max_ms": 1_400,
        "wait_total_ms": 3_200,
        "run_p50_ms": 500,
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
        # Of weights 1, 1, 1 and 3.
        "entitled_share": pytest.approx(1 / 6),
        "excess_share": pytest.approx(1 / 3),
        # b and c have limits to wait for, and d's wait belongs to the window of its release.
        "others_wait_ms": 0,
        "blame_ms": 0.0,
    }
    assert {name: a[name] for name in expected_a} == expected_a
    assert (b["arrivals"], b["wait_p50_ms"], b["wait_max_ms"], b["buried"]) == (2, 1_000, 2_000, 1)
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
    # It began and ended in one millisecond, and was there all the same.
    assert (last["wait_max_ms"], last["run_max_ms"], last["concurrency_peak"]) == (150_005, 0, 1)


def test_what_crosses_midnight_counts_on_both_days(spark: "SparkSession") -> None:
    history = [
        done("a", MIDNIGHT - 90_000, MIDNIGHT - 30_000, MIDNIGHT + 90_000),
        done("a", MIDNIGHT - 10_000, MIDNIGHT + 70_000, MIDNIGHT + 2 * DAY + 1),
        # Two may come at once, and then 1,000 ms must pass; those of the day before count.
        *(done("b", MIDNIGHT - 900, MIDNIGHT + at, MIDNIGHT + at) for at in (-900, -600, 100, 150)),
        # Ends exactly at midnight: it is not of the new day any more.
        done("c", MIDNIGHT - 2_000, MIDNIGHT - 1_000, MIDNIGHT),
    ]
    rows = computed(spark, history, [Policy("b", interval=1_000, burst=2)], window_s=3600)
    before, after = MIDNIGHT - 60 * MINUTE, MIDNIGHT
    assert [rows["a", at]["concurrency_peak"] for at in (before, after)] == [1, 2]
    assert [rows["a", at]["backlog_peak"] for at in (before, after)] == [1, 1]
    hours = [at for channel, at in rows if channel == "a"]
    assert len(hours) == 2 + 48
    assert (rows["b", before]["gap_min_ms"], rows["b", after]["gap_min_ms"]) == (None, 750)
    assert rows["b", after]["gaps_too_small"] == 1
    assert (rows["c", after]["completed"], rows["c", after]["concurrency_peak"]) == (1, 0)


def test_jains_index_is_of_those_who_were_hungry_all_along(spark: "SparkSession") -> None:
    from lonnymq.pipeline import fairness, windows

    def steadily(channel: str, served: int) -> list[Attempt]:
        """Always something waiting from noon on, for two minutes, and so many served in the first."""
        last = done(channel, NOON, NOON + 2 * MINUTE, NOON + 2 * MINUTE)
        return [done(channel, NOON, NOON + n * 1_000, NOON + n * 1_000 + 1) for n in range(served)] + [last]

    sated = [
        done("sated", NOON + 5, NOON + 6, NOON + 7),
        done("sated", NOON + 50_000, NOON + 50_001, NOON + 50_002),
    ]
    history = steadily("a", 10) + steadily("b", 30) + steadily("c", 20) + steadily("capped", 1) + sated
    policies = [Policy("c", weight=2), Policy("capped", max_concurrency=1)]
    frame = fairness(windows(attempts_frame(spark, history), policies_frame(spark, policies)))
    first = frame.orderBy("window_start").first()
    assert first is not None
    # Per weight: 10, 30 and 10.
    assert first.jain_index == pytest.approx(50**2 / (3 * (100 + 900 + 100)))
    assert (first.hungry_channels, first.channels, first.releases) == (3, 5, 63)
    # b had 30 of 63, and was entitled to 1 of 6. Not more than their share had a (10), c (20) and sated (2).
    assert (first.noisiest_channel, first.noisiest_excess_share) == ("b", pytest.approx(30 / 63 - 1 / 6))
    waited = sum(n * 1_000 for n in range(10)) + sum(n * 1_000 for n in range(20)) + 2
    assert first.noisiest_blame_ms == pytest.approx((30 / 63 - 1 / 6) * waited)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Attempt], list[Policy]]:
    """A few channels around midnight, with every outcome, ties, and times on the edges of windows."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    size = draw(st.integers(1, 60))
    policies = [
        Policy("limited", 1, None, choose.choice([300, 1_000, 20_000]), choose.choice([1, 2, 3])),
        Policy("capped", choose.choice([1, 4]), choose.choice([1, 2])),
        Policy("heavy", 5),
    ]
    history = []
    for _ in range(size):
        # Coarse steps make ties, and events on edges.
        step = choose.choice([1, 500, 15_000, 60_000])
        created = MIDNIGHT + choose.randrange(-600_000, 600_000) // step * step
        dequeue = created + choose.choice([0, 0, -10_000, 30_000, -created - 5])
        leased: int | None = (
            max(created, dequeue) + choose.choice([0, 1, 400, 60_000, 200_000]) // step * step
        )
        assert leased is not None
        ended = leased + choose.choice([0, 1, 700, 90_000]) // step * step
        outcome = choose.choice(["completed", "completed", "deferred", "expired", "buried", "cancelled"])
        attempt = choose.choice([1, 1, 1, 2, 3])
        if outcome == "cancelled":
            leased, attempt = None, choose.choice([0, 0, 1])
            ended = choose.choice([ended, created])
        channel = choose.choice(["plain", "limited", "capped", "heavy"])
        history.append(Attempt(channel, created, dequeue, leased, ended, outcome, attempt))
    return history, policies


@pytest.mark.timeout(600)
@settings(
    # The first is always the simplest, so that one is left to chance.
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
def test_random_histories_give_what_plain_python_computes(
    spark: "SparkSession", cases: list[tuple[list[Attempt], list[Policy]]]
) -> None:
    """A job takes long to plan and no time to run: many histories go in one, each in its own week."""
    from lonnymq.pipeline import windows

    week = 7 * DAY
    attempts: list[Attempt] = []
    policies: list[tuple[date, Policy]] = []
    expected: dict[tuple[str, int], dict[str, Any]] = {}
    for number, (history, rules) in enumerate(cases):
        shift = number * week
        moved = [
            Attempt(
                one.channel,
                one.created + shift,
                one.dequeue + shift,
                None if one.leased is None else one.leased + shift,
                one.ended + shift,
                one.outcome,
                one.attempt,
            )
            for one in history
        ]
        attempts += moved
        policies += [(day_of(MIDNIGHT + shift - 3 * DAY), rule) for rule in rules]
        expected |= straightforward.windows(moved, rules, MINUTE)
    found = by_window(windows(attempts_frame(spark, attempts), dated_policies_frame(spark, policies)))
    assert sorted(found) == sorted(expected)
    for key, row in expected.items():
        assert found[key] == {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in row.items()
        }, key


@pytest.mark.parametrize("wrong", [0, -60, 7, 50_000, True, 1.5])
def test_a_window_that_does_not_divide_a_day_is_refused(wrong: Any) -> None:
    from lonnymq.pipeline.windows import checked_window_s

    with pytest.raises(
        InvalidArgument, match="window_s must be a whole number of seconds that divides a day"
    ):
        checked_window_s(wrong)
