"""A channel's policy is defined once; SQL, the clients and the reference are generated from it."""

import inspect
from pathlib import Path
from typing import Any, Literal, get_type_hints

import psycopg
import pytest

from lonnymq import Channel, ChannelPolicy, InvalidArgument
from lonnymq.model import (
    DEFAULT_POLICY_FIELDS,
    POLICY_FIELDS,
    DefaultPolicyChanges,
    PolicyChanges,
    PolicyField,
)
from tests.conftest import Connect
from tools import policy as tool

FIELDS = list(POLICY_FIELDS.values())
COLUMNS = """
  select a.attname::text, format_type(a.atttypid, null), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = 'lonnymq.channel'::regclass and a.attnum > 0
    and a.attname not in ('id', 'name', 'created_at')
  order by a.attnum
"""


def values_of(field: PolicyField) -> tuple[Any, ...]:
    return (True, False) if field.is_flag else (field.low, field.high)


@pytest.mark.parametrize("name", POLICY_FIELDS)
def test_a_field_accepts_its_range_and_none_restores_its_default(queue: Any, name: str) -> None:
    channel = queue.channel("acme")
    for value in values_of(POLICY_FIELDS[name]):
        channel.set(**{name: value})
        assert channel.status().policy == ChannelPolicy(**{name: value})
        channel.set(**{name: None})
        assert channel.status().policy == ChannelPolicy()


def test_a_channel_that_no_worker_has_seen_shows_the_defaults(queue: Any) -> None:
    queue.enqueue("acme", 1)
    assert queue.channel("acme").status().policy == ChannelPolicy()


@pytest.mark.parametrize("name", POLICY_FIELDS)
def test_a_value_outside_its_range_is_refused_before_any_call(queue: Any, name: str) -> None:
    field = POLICY_FIELDS[name]
    wrong = (0, 1, "yes") if field.is_flag else (field.low - 1, field.high + 1, 1.5, "1", True)
    for value in wrong:
        with pytest.raises(InvalidArgument, match=rf"^{name} must be .*, got "):
            queue.channel("acme").set(**{name: value})
    assert queue.channel("acme").status() is None


def test_an_unknown_field_is_refused_and_the_fields_are_named(queue: Any) -> None:
    with pytest.raises(TypeError, match=r"no field 'wieght'; use one of .*weight"):
        queue.channel("acme").set(wieght=2)
    assert queue.channel("acme").status() is None


def test_the_table_has_the_types_and_defaults_of_the_policy(queue: Any, connect: Connect) -> None:
    expected = [(one.name, one.sql_type, one.is_flag, "false" if one.is_flag else None) for one in FIELDS]
    assert connect().execute(COLUMNS).fetchall() == expected


def test_the_table_itself_refuses_numbers_outside_their_range(queue: Any, connect: Connect) -> None:
    queue.channel("acme").set()
    session = connect()
    for field in FIELDS:
        # -1 stands for a lifted limit.
        for value in () if field.is_flag else (min(-2, field.low - 1), field.high + 1):
            with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.NumericValueOutOfRange)):
                session.execute(f"update lonnymq.channel set {field.name} = {value}")


def test_sql_knows_the_fields_and_ranges_from_the_table(queue: Any, connect: Connect) -> None:
    expected = {
        (one.name, *((False, True) if one.is_flag else (one.low, one.high)), one.can_be_lifted)
        for one in FIELDS
    }
    found = connect().execute("select name, range, can_be_lifted from policy_fields()").fetchall()
    assert {(name, *bounds, can_be_lifted) for name, bounds, can_be_lifted in found} == expected


def test_sql_refuses_a_value_outside_its_range_and_says_what_is_allowed(queue: Any, connect: Connect) -> None:
    session = connect()
    call = "select channel_set('acme', jsonb_build_object(%s::text, %s::numeric))"
    for field in FIELDS:
        for value in () if field.is_flag else (field.low - 1, field.high + 1):
            end = ', "none" or null' if field.can_be_lifted else ", or null"
            allowed = f"{field.name} must be a whole number between {field.low} and {field.high}{end}"
            with pytest.raises(psycopg.Error, match=allowed) as raised:
                session.execute(call, [field.name, value])
            assert raised.value.sqlstate == "LQ001"


def test_whole_numbers_may_have_a_decimal_point(queue: Any, connect: Connect) -> None:
    connect().execute("""select lonnymq.channel_set('acme', '{"weight": 3.0, "max_size": 1e3}')""")
    assert queue.channel("acme").status().policy == ChannelPolicy(weight=3, max_size=1000)


def test_set_accepts_exactly_the_fields_of_the_policy() -> None:
    policy = get_type_hints(ChannelPolicy)
    kinds = {
        name: kind | Literal["none"] | None if POLICY_FIELDS[name].can_be_lifted else kind | None
        for name, kind in policy.items()
    }
    assert kinds == get_type_hints(PolicyChanges)
    defaults = {name: policy[name] | None for name in DEFAULT_POLICY_FIELDS}
    assert defaults == get_type_hints(DefaultPolicyChanges)
    assert PolicyChanges.__required_keys__ == frozenset()
    assert "changes" in inspect.signature(Channel.set).parameters


def test_generated_policy_blocks_are_up_to_date() -> None:
    assert tool.main(["--check"]) == 0


def test_an_outdated_policy_block_is_found_and_regenerated(tmp_path: Path) -> None:
    page = tmp_path / "page.sql"
    page.write_text("a\n  -- policy x: written by hand\n  old\n  -- end of policy x\nb\n")
    targets = {page: {"policy x": lambda: "new\nlines"}}
    assert tool.main(["--check"], targets) == 1
    assert "old" in page.read_text()
    assert tool.main([], targets) == tool.main(["--check"], targets) == 0
    assert page.read_text() == "a\n  -- policy x: written by hand\n  new\n  lines\n  -- end of policy x\nb\n"
    page.write_text("a\n")
    with pytest.raises(ValueError, match="one block 'policy x'"):
        tool.main([], targets)
