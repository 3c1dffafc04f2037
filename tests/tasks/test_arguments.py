"""Arguments of tasks survive the round trip through JSON, and wrong ones are refused on both sides."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, Required, TypedDict, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
import typing_extensions

from lonnymq import InvalidArgument
from lonnymq.tasks.arguments import Arguments
from lonnymq.tasks.returned import ReturnValue


class Colour(Enum):
    RED = 1
    BLUE = 2


class Size(StrEnum):
    SMALL = "small"


@dataclass(frozen=True)
class Line:
    price: Decimal
    count: int = 1
    tags: frozenset[str] = frozenset()
    total: Decimal = field(init=False, default=Decimal(0))


@dataclass
class Order:
    id: UUID
    lines: list[Line]
    paid_at: datetime | None = None
    parent: "Order | None" = None


@dataclass
class Positive:
    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise ValueError("too small")


class Options(TypedDict):
    width: int
    height: NotRequired[int]


@dataclass
class Special(Order):
    more: int = 0


class Login(pydantic.BaseModel):
    password: pydantic.SecretStr


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    email: str = pydantic.Field(alias="eMail")
    since: date
    limits: dict[str, Decimal] = {}


UserId = NewType("UserId", int)
Anything = TypeVar("Anything")
AN_ID = UUID("12345678-1234-5678-1234-567812345678")
A_TIME = datetime(2026, 3, 29, 1, 2, 3, 456789, tzinfo=UTC)
AN_ORDER = Order(AN_ID, [Line(Decimal("9.90"), 2, frozenset({"a"}))], A_TIME, Order(AN_ID, []))

ROUND_TRIPS: list[tuple[Any, Any]] = [
    (None, None),
    *[(int, 7), (int, True), (int, 2**70), (bool, False), (float, 1.5), (float, 3), (str, "ü\0\n")],
    *[(bytes, b"\0\xff"), (bytes, b""), (Any, {"a": [1, None, "x", {"b": 2.5}]})],
    *[(datetime, A_TIME), (datetime, A_TIME.replace(tzinfo=None)), (date, date(2026, 1, 2))],
    *[(time, time(1, 2, 3)), (timedelta, timedelta(days=-1, microseconds=3)), (UUID, AN_ID)],
    *[(Decimal, Decimal("1.10")), (Decimal, Decimal("-0")), (Decimal, Decimal("1e400"))],
    *[(Colour, Colour.BLUE), (Size, Size.SMALL), (Literal["a", 1, None], 1), (UserId, UserId(5))],
    *[(Literal[Colour.RED, "a"], Colour.RED), (Literal[Size.SMALL], Size.SMALL), (Literal[True, 1], 1)],
    *[(list[UUID], [AN_ID]), (list, [1, "a"]), (Sequence[date], [date(2026, 1, 2)])],
    *[(set[int], {1, 2}), (frozenset[Size], frozenset({Size.SMALL})), (tuple[int, ...], (1, 2, 3))],
    *[(tuple[int, UUID], (1, AN_ID)), (tuple[()], ())],
    *[(dict[str, Decimal], {"a": Decimal("1.5")}), (Mapping[UUID, int], {AN_ID: 1}), (dict, {"a": 1})],
    *[(dict[date, list[int]], {date(2026, 1, 2): [1]}), (dict[Size, int], {Size.SMALL: 1})],
    *[(int | None, None), (int | str, "7"), (UUID | str, "no uuid"), (UUID | str, AN_ID)],
    *[(datetime | date, A_TIME), (Line | Order, AN_ORDER), (bool | int, 1), (list[int] | int, [1])],
    *[
        (Order, AN_ORDER),
        (Line, Line(Decimal(1))),
        (Options, {"width": 1}),
        (Options, {"width": 1, "height": 2}),
    ],
    (Customer, Customer(eMail="a@b", since=date(2026, 1, 2), limits={"x": Decimal("1.5")})),
    (list[Customer] | None, [Customer(eMail="a@b", since=date(2026, 1, 2))]),
    (Annotated[dict[str, Annotated[int, pydantic.Field(gt=0)]], "a note"], {"a": 1}),
    (Anything, [1, 2]),
]


def of(annotation: Any) -> Arguments:
    def function(value): ...

    function.__annotations__ = {"value": annotation}
    return Arguments(function, "work")


def round_trip(
    arguments: Arguments, *positional: Any, **named: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments after a round trip through JSON."""
    written = json.loads(json.dumps(arguments.to_json(positional, named), allow_nan=False))
    bound = arguments.from_json(written)
    return bound.args, bound.kwargs


@pytest.mark.parametrize(("annotation", "value"), ROUND_TRIPS, ids=repr)
def test_a_value_survives_the_round_trip_through_json(annotation: Any, value: Any) -> None:
    [found], _ = round_trip(of(annotation), value)
    assert found == value
    assert type(found) is type(value)


def test_a_datetime_keeps_its_instant_and_its_offset() -> None:
    local = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    [found], _ = round_trip(of(datetime), local)
    assert (found.astimezone(UTC), found.utcoffset()) == (local.astimezone(UTC), local.utcoffset())


NESTED_IN_ITSELF: list[Any] = []
NESTED_IN_ITSELF.append(NESTED_IN_ITSELF)

REFUSED: list[tuple[Any, Any, str]] = [
    (int, "7", "work: value must be an int, got '7'"),
    (int, 1.0, "must be an int"),
    (str, 7, "must be a str"),
    (str, b"x", "must be a str"),
    (bool, 1, "must be a bool"),
    (float, float("nan"), "must be a finite float"),
    (None, 0, "must be None"),
    (datetime, date(2026, 1, 1), "must be a datetime"),
    (date, A_TIME, "must be a date"),
    (UUID, str(AN_ID), "must be a UUID"),
    (Decimal, 1.5, "must be a Decimal"),
    (Colour, 1, "must be a member of Colour"),
    (Literal["a", 1], True, "must be one of 'a', 1"),
    (
        Literal["small", Size.SMALL],
        Size.SMALL,
        "must be unambiguous in JSON: this would be read back as 'small'",
    ),
    (Any, NESTED_IN_ITSELF, "work: its arguments are nested too deeply, or contain themselves"),
    (list[int], (1,), "must be a list"),
    (list[int], [1, "x"], r"work: value\[1\] must be an int, got 'x'"),
    (Sequence[str], "abc", "must be a sequence"),
    (set[int], [1], "must be a set"),
    (tuple[int, int], (1, 2, 3), "must be a tuple of 2"),
    (dict[str, int], {"a": "b"}, r"work: value\.a must be an int"),
    (dict[int, int], {1: 2}, "key 1, must be a string when it is written as JSON"),
    (int | None, "x", "must be an int or None"),
    (UUID | str, str(AN_ID), "must be unambiguous in JSON: this would be read back as a UUID"),
    (Order, Order("no uuid", []), r"work: value\.id must be a UUID"),  # type: ignore[arg-type]
    (Order, {"id": AN_ID}, "must be an instance of Order"),
    (Options, {"height": 1}, "must be an instance of Options, which needs 'width'"),
    (Options, {"width": 1, "colour": 2}, "must be an instance of Options, which has no 'colour'"),
    (Customer, {"email": "x"}, "must be an instance of Customer"),
    (Order, Special(AN_ID, []), "must be an instance of Order"),
    (Login, Login(password=pydantic.SecretStr("x")), "that JSON returns unchanged, got .*[*]"),
    (Any, A_TIME, "a value that JSON returns unchanged .annotate the parameter"),
    (Any, (1,), "a value that JSON returns unchanged"),
    (Any, {"a": [{1, 2}]}, r"work: value\.a\[0\] must be a value that JSON returns unchanged"),
    (Any, {1: 2}, "a dict whose keys are strings"),
    (Any, float("nan"), "a value that JSON returns unchanged"),
]


@pytest.mark.parametrize(("annotation", "value", "expected_error"), REFUSED, ids=repr)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(
    annotation: Any, value: Any, expected_error: str
) -> None:
    with pytest.raises(InvalidArgument, match=expected_error):
        of(annotation).to_json((value,), {})


UNREADABLE: list[tuple[Any, Any]] = [
    *[
        (int, "7"),
        (int, 1.5),
        (int, None),
        (str, 1),
        (bool, 0),
        (float, "x"),
        (bytes, "not base64!"),
        (bytes, 1),
    ],
    *[(datetime, "yesterday"), (datetime, 1), (date, "2026-02-30"), (time, "25:00"), (timedelta, "1")],
    *[
        (timedelta, 1e300),
        (UUID, "x"),
        (Decimal, "x"),
        (Decimal, 1),
        (Colour, 3),
        (Colour, "RED"),
        (Literal["a"], "b"),
    ],
    *[
        (list[int], {}),
        (list[int], ["x"]),
        (tuple[int, int], [1]),
        (dict[str, int], []),
        (dict[UUID, int], {"x": 1}),
    ],
    *[(int | None, "x"), (Order, {}), (Order, []), (Order, {"id": str(AN_ID), "lines": [], "more": 1})],
    *[(Positive, {"value": 0}), (Options, {}), (Customer, {"eMail": "x"}), (Customer, [])],
]


@pytest.mark.parametrize(("annotation", "written"), UNREADABLE, ids=repr)
def test_json_of_the_wrong_type_is_refused_in_the_worker(annotation: Any, written: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^work: value"):
        of(annotation).from_json({"value": written})


def test_a_call_is_checked_against_the_signature() -> None:
    def work(a: int, /, b: int, *, c: int = 3) -> None: ...

    arguments = Arguments(work, "work")
    assert arguments.to_json((1, 2), {}) == {"a": 1, "b": 2}
    assert round_trip(arguments, 1, b=2, c=4) == ((1, 2), {"c": 4})
    calls: list[tuple[tuple[int, ...], dict[str, int]]] = [
        ((1,), {}),
        ((1, 2, 3), {}),
        ((1, 2), {"d": 4}),
        ((1,), {"a": 1, "b": 2}),
        ((1, 2), {"b": 2}),
    ]
    for positional, named in calls:
        with pytest.raises(InvalidArgument, match=r"^work\(a: int, /, b: int, \*, c: int = 3\): "):
            arguments.to_json(positional, named)


def test_a_task_can_take_any_number_of_arguments() -> None:
    def work(*ids: UUID, **prices: Decimal) -> None: ...

    arguments = Arguments(work, "work")
    assert round_trip(arguments, AN_ID, AN_ID, a=Decimal(1)) == ((AN_ID, AN_ID), {"a": Decimal(1)})
    assert round_trip(arguments) == ((), {})
    with pytest.raises(InvalidArgument, match=r"work: ids\[1\] must be a UUID, got 5"):
        arguments.to_json((AN_ID, 5), {})


def test_defaults_are_those_of_the_worker() -> None:
    """A default can change, and an argument with a default can be added, while messages wait."""

    def work(a: int, b: int = 2, *, c: date = date(2026, 1, 1)) -> None: ...

    arguments = Arguments(work, "work")
    assert arguments.to_json((1,), {}) == {"a": 1}
    assert round_trip(arguments, 1) == ((1, 2), {"c": date(2026, 1, 1)})


def test_a_message_with_missing_or_unknown_arguments_is_refused() -> None:
    def work(a: int, b: int = 2) -> None: ...

    arguments = Arguments(work, "work")
    with pytest.raises(InvalidArgument, match=r"^work\(a: int, b: int = 2\): missing argument 'a'$"):
        arguments.from_json({"b": 1})
    with pytest.raises(InvalidArgument, match=r"^work\(a: int, b: int = 2\): unknown arguments 'd', 'c'$"):
        arguments.from_json({"a": 1, "d": 1, "c": 2})
    with pytest.raises(InvalidArgument, match="work: arguments must be an object"):
        arguments.from_json([1])


class Extended(typing_extensions.TypedDict):
    width: int
    # Texts, as with `from __future__ import annotations`.
    height: "NotRequired[int]"
    depth: "Annotated[Required[int], 1]"
    note: typing_extensions.ReadOnly[NotRequired[str]]


class Texts(TypedDict, total=False):
    width: "Required[int]"
    height: "int"


@pytest.mark.parametrize(
    ("annotation", "required"), [(Extended, {"width": 1, "depth": 2}), (Texts, {"width": 1})]
)
def test_a_typed_dict_needs_the_keys_that_it_declares_as_required(annotation: Any, required: Any) -> None:
    arguments = of(annotation)
    for value in (required, {**required, "height": 3}):
        assert arguments.from_json(arguments.to_json((value,), {})).args == (value,)
    for name in required:
        with pytest.raises(InvalidArgument, match=f"which needs '{name}'"):
            arguments.to_json(({one: 1 for one in required if one != name},), {})


class NoEquality:
    pass


@dataclass
class Cents:
    amount: int
    is_scaled: bool = False
    cache: Any = field(init=False, default_factory=NoEquality)
    hits: int = field(init=False, default=0, compare=False)

    def __post_init__(self) -> None:
        if not self.is_scaled:
            self.amount *= 100


@dataclass
class Counted:
    name: str
    count: int = field(init=False, default=0)


def test_a_dataclass_that_would_be_read_back_with_other_values_is_refused() -> None:
    cents, counted = of(Cents), of(list[Counted])
    fine = Cents(700, is_scaled=True)
    fine.hits = 3
    assert cents.from_json(cents.to_json((fine,), {})).args[0].amount == 700
    with pytest.raises(
        InvalidArgument, match=r"amount must be what the constructor of Cents makes of it, 70000"
    ):
        cents.to_json((Cents(7),), {})
    changed = Counted("a")
    counted.to_json(([changed],), {})
    changed.count = 2
    with pytest.raises(InvalidArgument, match=r"\[0\]\.count must be .* Counted makes of it, 0, got 2"):
        counted.to_json(([changed],), {})


@pytest.mark.parametrize(
    "value",
    [time(12, tzinfo=ZoneInfo("Europe/Berlin")), timedelta(days=200_000, microseconds=1), timedelta.max],
)
def test_a_value_that_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="that JSON returns unchanged"):
        of(type(value)).to_json((value,), {})


class Unknown: ...


@dataclass
class Holder:
    inside: Unknown


@pytest.mark.parametrize(
    "annotation", [Unknown, list[Unknown], Holder, complex, type, int | Unknown, dict[str, Holder]]
)
def test_an_unsupported_annotation_is_refused_when_a_task_is_declared(annotation: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"^work: value: .* cannot be the type of a task's argument: use JSON types"
    ):
        of(annotation)


def test_an_annotation_that_is_defined_later_is_resolved_on_first_use() -> None:
    def work(value: "Later") -> "Never": ...  # type: ignore[name-defined]  # noqa: F821

    arguments = Arguments(work, "work")
    with pytest.raises(InvalidArgument, match="cannot be resolved: name 'Later' is not defined"):
        arguments.to_json((1,), {})
    globals()["Later"] = Line
    try:
        assert round_trip(arguments, Line(Decimal(1))) == ((Line(Decimal(1)),), {})
    finally:
        del globals()["Later"]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are computed at once")
def test_a_name_without_quotes_may_be_defined_later_too() -> None:
    space: dict[str, Any] = {"dataclass": dataclass}
    exec("def work(one: Later, many: list[Later]) -> Later: ...", space)
    arguments = Arguments(space["work"], "work")
    assert not ReturnValue(space["work"], "work").is_none
    with pytest.raises(InvalidArgument, match=r"cannot be resolved: .*'Later'"):
        arguments.to_json((1, []), {})
    exec("@dataclass\nclass Later:\n    n: int", space)
    later = space["Later"](7)
    written = arguments.to_json((later, [later]), {})
    assert arguments.from_json(written).args == (later, [later])


@dataclass
class Salted:
    value: int
    salt: InitVar[int]


def test_a_dataclass_that_needs_more_than_its_fields_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match=r"Salted cannot be .* its constructor needs 'salt', which is not a field"
    ):
        of(Salted)


def test_a_misspelled_argument_is_refused_with_a_suggestion() -> None:
    def transcode(video: int, *, width: int = 640) -> None: ...

    arguments = Arguments(transcode, "transcode")
    call = r"^transcode\(video: int, \*, width: int = 640\): "
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((), {"vido": 7}, r"unknown argument 'vido'; did you mean 'video'\?$"),
        ((7,), {"widht": 7}, r"unknown argument 'widht'; did you mean 'width'\?$"),
        ((7,), {"colour": 7}, r"unknown argument 'colour'$"),
        ((), {"width": 7}, r"missing a required argument: 'video'$"),
        ((7, 8), {}, r"too many positional arguments$"),
        ((7,), {"video": 7}, r"multiple values for argument 'video'$"),
    ]
    for positional, named, expected_error in calls:
        with pytest.raises(InvalidArgument, match=call + expected_error):
            arguments.to_json(positional, named)
    for written, expected_error in (
        ({"vido": 7}, r"unknown argument 'vido'; did you mean 'video'\?$"),
        ({"width": 7}, r"missing argument 'video'$"),
    ):
        with pytest.raises(InvalidArgument, match=call + expected_error):
            arguments.from_json(written)


def test_a_value_of_the_wrong_type_is_refused_with_the_signature() -> None:
    def transcode(video: int, width: int = 640) -> None: ...

    arguments = Arguments(transcode, "transcode")
    expected_error = (
        r"^transcode: video must be an int, got '7'; call it as transcode\(video: int, width: int = 640\)$"
    )
    with pytest.raises(InvalidArgument, match=expected_error):
        arguments.to_json(("7",), {})
    with pytest.raises(InvalidArgument, match=expected_error):
        arguments.from_json({"video": "7"})


def test_a_long_path_is_shortened_in_the_middle() -> None:
    with pytest.raises(
        InvalidArgument, match=r"^work: value\[0\]\[0\]\[0\]\[0\] \.\.\. 91 levels \.\.\. \[0\]"
    ):
        of(Any).to_json((_deep(100, {1}),), {})


def _deep(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = [end]
    return end
