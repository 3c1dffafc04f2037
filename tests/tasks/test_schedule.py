"""When crons tick: expressions, time zones, clock changes and missed ticks."""

import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lonnymq import CatchUp, DueCron, InvalidArgument, Ticks
from lonnymq.cron import schedule

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(expression: str, timezone: str, after: datetime, until: datetime) -> list[datetime]:
    return list(takewhile(lambda tick: tick <= until, schedule.ticks_after(expression, timezone, after)))


def shown(found: list[datetime]) -> list[str]:
    return [f"{tick:%d %H:%M}" for tick in found]


def due(
    expression: str, catch_up: str, mark_at: datetime, now_at: datetime, timezone: str = "UTC"
) -> DueCron:
    return DueCron("a", expression, timezone, CatchUp(catch_up), mark_at, now_at)


# Berlin: at 01:00 UTC on 2026-03-29 the clock goes from 02:00 to 03:00, on 2026-10-25 from 03:00 to 02:00.
SPRING = instant("2026-03-28T12:00")
AUTUMN = instant("2026-10-24T12:00")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 02:30 does not exist on the 29th: the tick comes at the end of the missing hour.
        ("30 2 * * *", ["29 01:00", "30 00:30"]),
        ("0 3 * * *", ["29 01:00", "30 01:00"]),
        # Two ticks that would coincide are one.
        ("0 2,3 * * *", ["29 01:00", "30 00:00", "30 01:00"]),
        # Intervals ignore the clock change.
        ("0 */6 * * *", ["28 17:00", "28 23:00", "29 04:00", "29 10:00", "29 16:00", "29 22:00", "30 04:00"]),
    ],
)
def test_every_day_has_its_tick_when_the_clock_is_set_forward(expression: str, expected: list[str]) -> None:
    assert shown(ticks(expression, "Europe/Berlin", SPRING, SPRING + 40 * HOUR)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 02:30 occurs twice on the 25th: the tick comes once.
        ("30 2 * * *", ["25 00:30", "26 01:30"]),
        ("0 3 * * *", ["25 02:00", "26 02:00"]),
        ("0 1,2,3 * * *", ["24 23:00", "25 00:00", "25 02:00", "26 00:00", "26 01:00", "26 02:00"]),
    ],
)
def test_no_day_has_its_tick_twice_when_the_clock_is_set_back(expression: str, expected: list[str]) -> None:
    assert shown(ticks(expression, "Europe/Berlin", AUTUMN, AUTUMN + 40 * HOUR)) == expected


@pytest.mark.parametrize("middle", [SPRING, AUTUMN])
def test_interval_expressions_tick_evenly_across_clock_changes(middle: datetime) -> None:
    found = ticks("*/15 * * * *", "Europe/Berlin", middle, middle + 24 * HOUR)
    assert found == [middle + n * 15 * MINUTE for n in range(1, 97)]


def test_a_tick_is_not_repeated_in_the_second_pass_of_the_hour() -> None:
    second_time_at_half_past_two = instant("2026-10-25T01:30")
    found = ticks(
        "30 2 * * *", "Europe/Berlin", second_time_at_half_past_two - 5 * MINUTE, AUTUMN + 24 * HOUR
    )
    assert found == []


# Lord Howe Island: at 15:00 UTC on 2026-04-04 the clock goes from 02:00 to 01:30.
HALF_AN_HOUR_BACK = instant("2026-04-04T15:00")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 */20 2 * * *", ["04 15:30", "04 15:50", "04 16:10"]),
        ("15 */2 * * *", ["04 13:15", "04 15:45", "04 17:45"]),
        ("50 * * * *", ["04 12:50", "04 13:50", "04 14:50", "04 15:20", "04 16:20", "04 17:20"]),
    ],
)
def test_no_tick_is_lost_when_the_clock_is_set_back_by_half_an_hour(
    expression: str, expected: list[str]
) -> None:
    for hours in (3, 2, 1, 0):
        begin = HALF_AN_HOUR_BACK - hours * HOUR
        found = ticks(expression, "Australia/Lord_Howe", begin, HALF_AN_HOUR_BACK + 3 * HOUR)
        assert shown(found) == [one for one in expected if one > f"{begin:%d %H:%M}"]


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
]
EXPRESSIONS = [
    *("50 * * * *", "0 50 * * * *", "15 */2 * * *"),
    *("* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 */3 * * *"),
    *("59 23 L * *", "0 12 * * MON#1", "30 1 29 2 *", "0 30 1 * * *", "*/20 * 2 * * *"),
]
# A clock change in each of these zones.
CHANGES = ["2026-03-29T01:00", "2026-10-25T01:00", "2026-03-08T05:00", "2026-11-01T05:00", "2026-04-04T15:00"]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.sampled_from(CHANGES).map(instant),
    st.integers(-36 * 3600, 36 * 3600),
    st.integers(0, 12 * 3600),
    st.integers(0, 999_999),
)
def test_latest_tick_is_the_last_of_ticks_after(
    expression: str, timezone: str, change: datetime, offset_s: int, span_s: int, microsecond: int
) -> None:
    after = change + timedelta(seconds=offset_s)
    until = (after + timedelta(seconds=span_s)).replace(microsecond=microsecond)
    found = ticks(expression, timezone, after, until)
    assert found == sorted(set(found))
    assert schedule.latest_tick(expression, timezone, after, until) == (found[-1] if found else None)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.sampled_from(CHANGES).map(instant),
    st.lists(st.integers(-3 * 3600, 3 * 3600), max_size=20),
)
def test_frequent_and_rare_checks_find_the_same_ticks(
    expression: str, timezone: str, change: datetime, checks_s: list[int]
) -> None:
    begin, end = change - 3 * HOUR, change + 3 * HOUR
    mark_at = begin
    found: list[datetime] = []
    for now_at in [*(change + timedelta(seconds=check_s) for check_s in sorted(checks_s)), end]:
        while mark_at < now_at:
            decided = schedule.decide(due(expression, "all", mark_at, now_at, timezone), limit=50)
            assert decided.next_at > decided.until_at
            found += decided.ticks
            mark_at = decided.until_at
    assert found == ticks(expression, timezone, begin, end)


NOON = instant("2026-01-15T12:00")


def test_catch_up_decides_which_missed_ticks_are_created() -> None:
    """A tick every ten minutes, and no worker for an hour: the last tick was five minutes ago."""
    mark_at, now_at = NOON, NOON + HOUR + 5 * MINUTE
    following = now_at + 5 * MINUTE
    everything = tuple(NOON + n * 10 * MINUTE for n in range(1, 7))
    assert schedule.decide(due("*/10 * * * *", "all", mark_at, now_at)) == Ticks(
        everything, now_at, following
    )
    assert schedule.decide(due("*/10 * * * *", "latest", mark_at, now_at)) == Ticks(
        everything[-1:], now_at, following
    )
    assert schedule.decide(due("*/10 * * * *", "none", mark_at, now_at)) == Ticks((), now_at, following)


@pytest.mark.parametrize("catch_up", ["all", "latest", "none"])
def test_a_tick_that_is_slightly_late_is_not_missed(catch_up: str) -> None:
    now_at = NOON + timedelta(seconds=59)
    found = schedule.decide(due("0 12 * * *", catch_up, NOON - HOUR, now_at))
    assert found == Ticks((NOON,), now_at, NOON + 24 * HOUR)


def test_missed_ticks_before_a_current_tick_are_not_the_latest() -> None:
    now_at = NOON + timedelta(seconds=1)
    assert schedule.decide(due("*/10 * * * *", "latest", NOON - HOUR, now_at)).ticks == (NOON,)


def test_years_of_missed_ticks_are_caught_up_in_several_steps() -> None:
    mark_at, now_at = NOON, NOON + timedelta(days=800)
    decided = schedule.decide(due("* * * * *", "all", mark_at, now_at))
    assert len(decided.ticks) == schedule.MAX_TICKS
    assert decided.until_at == decided.ticks[-1]
    assert decided.next_at == decided.until_at + MINUTE
    assert schedule.decide(due("* * * * * *", "latest", mark_at, now_at)).ticks[-1] == now_at


@pytest.mark.parametrize(
    ("expression", "span"), [("* * * * * *", 1), ("* * * * *", 60), ("0 */6 * * *", 6 * 3600)]
)
def test_only_the_latest_of_too_many_missed_ticks_are_caught_up(expression: str, span: int) -> None:
    """Every second since 1970 would flood the queue."""
    mark_at, now_at = instant("1970-01-01T00:00"), NOON
    found: list[datetime] = []
    skipped: list[datetime] = []
    steps = 0
    while mark_at < now_at:
        decided = schedule.decide(due(expression, "all", mark_at, now_at))
        assert len(decided.ticks) <= schedule.MAX_TICKS
        skipped += [] if decided.skipped_to is None else [decided.skipped_to]
        found += decided.ticks
        mark_at = decided.until_at
        steps += 1
    assert len(skipped) == 1
    assert skipped[0] < found[0]
    begin = found[0].timestamp()
    assert [tick.timestamp() for tick in found] == [begin + n * span for n in range(len(found))]
    # Ticks of the last minute are not missed.
    assert schedule.MAX_MISSED <= len(found) <= schedule.MAX_MISSED + 60
    assert steps <= len(found) / schedule.MAX_TICKS + 1


def test_no_missed_tick_is_skipped_below_the_limit() -> None:
    """Also if catching up takes several steps."""
    decided = schedule.decide(due("* * * * *", "all", NOON - 900 * MINUTE, NOON))
    assert (decided.ticks[0], decided.skipped_to) == (NOON - 899 * MINUTE, None)


FAR = [datetime.min, datetime(1, 1, 1, 14), datetime(9998, 12, 31), datetime.max]


@pytest.mark.parametrize("far", [one.replace(tzinfo=UTC) for one in FAR], ids=str)
@pytest.mark.parametrize("timezone", ["UTC", "Asia/Kathmandu", "America/New_York"])
def test_dates_at_the_ends_of_the_calendar_raise_no_error(far: datetime, timezone: str) -> None:
    for expression in ("* * * * *", "0 0 29 2 *", "30 2 * * *"):
        list(islice(schedule.ticks_after(expression, timezone, far), 3))
        schedule.latest_tick(expression, timezone, far, far)
        schedule.latest_tick(expression, timezone, datetime.min.replace(tzinfo=UTC), NOON)


@settings(max_examples=300, deadline=None)
@given(
    st.text("0123456789*/,-#LWMONFEB ", max_size=30)
    | st.lists(
        st.sampled_from(
            [
                "*",
                "0",
                "31",
                "L",
                "LW",
                "5L",
                "MON#5",
                "*/29",
                "1-5",
                "2",
                "FEB",
                "*/7",
                "30,31",
                "0-7/3",
                "L/2",
                "1#1",
            ]
        ),
        min_size=5,
        max_size=6,
    ).map(" ".join)
)
def test_any_expression_ticks_or_is_refused(expression: str) -> None:
    """No other error is raised, and no search goes beyond 50 years."""
    with suppress(InvalidArgument):
        schedule.require_valid(expression, "Europe/Berlin")
        assert schedule.explain(expression)
        decided = schedule.decide(due(expression, "all", instant("1970-01-01T00:00"), NOON, "Europe/Berlin"))
        assert decided.next_at > decided.until_at


def test_an_expression_is_explained() -> None:
    assert schedule.explain("*/5 * * * *") == "Every fifth minute of every hour"
    assert schedule.explain("30 2 * * MON") == "At 02:30 on Monday"


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "1," * 10**6 + "1 * * * *",
        "9" * 5000 + " * * * *",
        "61 * * * *",
        "x",
        None,
        5,
        "0 0 30 2 *",
        "@daily",
    ],
)
def test_an_expression_that_cannot_be_read_is_refused(expression: object) -> None:
    with pytest.raises(InvalidArgument, match="expression must be a cron expression"):
        schedule.require_valid(expression, "UTC")


def test_an_expression_that_never_ticks_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one that ticks within the next 50 years"):
        schedule.require_valid("0 0 */40 * MON#5", "UTC")


@pytest.mark.parametrize("timezone", ["", "Mars/Olympus", "../etc/passwd", None, 5, "Europe", "a\0b"])
def test_an_unknown_time_zone_is_refused(timezone: object) -> None:
    with pytest.raises(InvalidArgument, match="timezone must be the name of a time zone"):
        schedule.require_valid("* * * * *", timezone)


def test_without_the_library_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['cronsim'] = None\n"
        "import lonnymq\n"
        "try: lonnymq.App(lonnymq.Queue('')).cron('* * * * *', channel='a')\n"
        "except lonnymq.LonnyError as error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install ".[cron]"' in answer.stdout
