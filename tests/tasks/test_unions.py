"""Converting recursive unions takes time in proportion to the value."""

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import FrameType
from typing import Any, Literal, NotRequired, TypedDict, Union
from uuid import UUID

import pydantic
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lonnymq import InvalidArgument
from lonnymq.tasks.arguments import Arguments
from lonnymq.tasks.value_path import ValuePath


@dataclass
class Left:
    child: "Left | Right | None"
    tag: Literal["left"] = "left"


@dataclass
class Right:
    child: "Left | Right | None"
    tag: Literal["right"] = "right"


class LeftDict(TypedDict):
    child: "LeftDict | RightDict | None"
    left: NotRequired[int]


class RightDict(TypedDict):
    child: "LeftDict | RightDict | None"
    right: NotRequired[int]


@dataclass
class Twig:
    children: "list[Twig]"
    name: str


@dataclass
class Branch:
    children: "list[Twig | Branch]"
    name: int


def of(annotation: Any) -> Arguments:
    def function(value): ...

    function.__annotations__ = {"value": annotation}
    return Arguments(function, "work")


def steps(call: Callable[[], Any], *, within: str = "lonnymq", of: str | None = None) -> int:
    """Return how many functions of the package are called, whether the call raises or not."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        code = frame.f_code
        count += event == "call" and within in code.co_filename and of in (None, code.co_name)

    sys.setprofile(profile)
    try:
        call()
    except InvalidArgument:
        pass
    finally:
        sys.setprofile(None)
    return count


def chain(depth: int, make: Callable[[Any, int], Any], end: Any) -> Any:
    value = end
    for level in range(depth):
        value = make(value, level)
    return value


READ: dict[str, tuple[Any, Callable[[Any, int], Any], Any]] = {
    # No member fits, which is known only at the innermost level.
    "wrong innermost value": (Left | Right, lambda child, _: {"child": child}, "x"),
    # Each level is tried as the wrong member first.
    "right at each level": (Left | Right, lambda child, _: {"child": child, "tag": "right"}, None),
    "wrong tags": (Left | Right, lambda child, _: {"child": child, "tag": "x"}, None),
    "typed dicts": (LeftDict | RightDict, lambda child, _: {"child": child}, "x"),
    "through a record": (Twig | Branch, lambda child, _: {"children": [child], "name": 1}, "x"),
}


@pytest.mark.parametrize(("annotation", "make", "end"), READ.values(), ids=READ)
def test_the_cost_of_reading_a_nested_union_is_linear_in_its_depth(
    annotation: Any, make: Callable[[Any, int], Any], end: Any
) -> None:
    """Without remembered results, the time would double with each level."""
    arguments = of(annotation)
    deep, deeper = (
        steps(lambda depth=depth: arguments.from_json({"value": chain(depth, make, end)}))  # type: ignore[misc]
        for depth in (20, 40)
    )
    assert deeper < 3 * deep


WRITTEN: dict[str, tuple[Any, Callable[[Any, int], Any], Any]] = {
    "dataclasses": (Left | Right, lambda child, _: Right(child), None),
    "wrong dataclasses": (Left | Right, lambda child, _: Right(child), "x"),
    "typed dicts": (LeftDict | RightDict, lambda child, _: {"child": child, "left": 1}, None),
    "wrong typed dicts": (LeftDict | RightDict, lambda child, _: {"child": child}, "x"),
}


@pytest.mark.parametrize(("annotation", "make", "end"), WRITTEN.values(), ids=WRITTEN)
def test_the_cost_of_writing_a_nested_union_is_linear_in_its_depth(
    annotation: Any, make: Callable[[Any, int], Any], end: Any
) -> None:
    arguments = of(annotation)
    deep, deeper = (
        steps(lambda depth=depth: arguments.to_json((chain(depth, make, end),), {}))  # type: ignore[misc]
        for depth in (20, 40)
    )
    assert deeper < 3 * deep


class Colour(Enum):
    RED = "red"


class Named(pydantic.BaseModel):
    name: str


class Counted(pydantic.BaseModel):
    name: int


# Only the last member fits.
UNFITTING: dict[str, tuple[Any, Any]] = {
    "texts": (datetime | date | UUID | Decimal | str, "a"),
    "choices": (Literal["b", "c"] | Colour | str, "a"),
    "numbers": (Literal[1] | str | bool | float, 7.5),
    "lists": (list[int] | tuple[int, int] | list[str], ["a"]),
    "records": (LeftDict | Left | Twig | dict[str, int], {"name": 1}),
    "models": (Counted | Named, Named(name="ada")),
}


@pytest.mark.parametrize(("member", "value"), UNFITTING.values(), ids=UNFITTING)
def test_members_of_a_union_that_do_not_fit_format_no_errors(member: Any, value: Any) -> None:
    """Formatting discarded errors would block the event loop for seconds with a list of a million texts."""
    arguments = of(list[member])
    values = [value] * 10
    assert steps(lambda: arguments.to_json((values,), {}), within="texts.py") == 0
    written = arguments.to_json((values,), {})
    assert arguments.from_json(written).args == (values,)
    assert steps(lambda: arguments.from_json(written), within="texts.py") == 0


@dataclass
class Nest:
    child: "Nest | Named | None" = None
    numbers: list[int] = field(default_factory=list)


def test_a_model_in_a_nested_union_is_not_read_again_at_each_level() -> None:
    """Otherwise each level would be written as JSON again, with everything inside it."""
    written = chain(50, lambda child, _: {"child": child}, {"numbers": [1], "child": {"child": 7}})
    count = steps(lambda: of(Nest).from_json({"value": written}), within="json/__init__.py", of="dumps")
    # A number may be a model too, as far as its type tells.
    assert count <= 1
    nested = chain(50, lambda child, _: Nest(child), Named(name="ada"))
    assert of(Nest).from_json(of(Nest).to_json((nested,), {})).args == (nested,)


class Filled(pydantic.BaseModel):
    name: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def fill(cls, data: Any) -> Any:
        return {"name": "ada", **data}


class WithDefaults(pydantic.BaseModel):
    name: str

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"name": "ada", **given})


class Aliased(pydantic.BaseModel):
    name: str = pydantic.Field(validation_alias=pydantic.AliasChoices("Name", pydantic.AliasPath("names", 0)))


class Twice(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    name: str = pydantic.Field(alias="Name")


class Rooted(pydantic.RootModel[dict[str, str]]):
    pass


READABLE: list[tuple[Any, Any]] = [
    (Filled, {}),
    (WithDefaults, {}),
    (Aliased, {"Name": "ada"}),
    (Aliased, {"names": ["ada"]}),
    (Twice, {"name": "ada"}),
    (Twice, {"Name": "ada"}),
    (Rooted, {}),
]


@pytest.mark.parametrize(("model", "written"), READABLE)
def test_a_model_accepts_whatever_pydantic_accepts(model: Any, written: Any) -> None:
    expected = model.model_validate(written)
    assert of(model | None).from_json({"value": written}).args == (expected,)
    assert of(Left | model).from_json({"value": written}).args == (expected,)


def test_a_model_with_missing_fields_is_refused_with_their_names() -> None:
    with pytest.raises(
        InvalidArgument, match=r"^work: value must be an instance of Twice, which needs 'Name', got"
    ):
        of(Twice).from_json({"value": {"other": 1}})


def test_a_nested_union_survives_the_round_trip_through_json() -> None:
    value = chain(50, lambda child, level: Left(child) if level % 3 else Right(child), None)
    arguments = of(Left | Right)
    assert arguments.from_json(arguments.to_json((value,), {})).args == (value,)


def test_conversion_results_are_kept_only_within_a_union() -> None:
    """Otherwise a long list of optional records would keep a second copy of itself."""
    seen: list[int] = []

    @dataclass
    class Counted:
        n: int

        def __post_init__(self) -> None:
            frame: FrameType | None = sys._getframe()
            while frame is not None and not isinstance(frame.f_locals.get("path"), ValuePath):
                frame = frame.f_back
            assert frame is not None
            seen.append(len(frame.f_locals["path"]._results or ()))

    written = [{"n": n} for n in range(100)]
    for annotation in (list[Counted | Left], list[Counted] | None, list[Counted]):
        of(annotation).from_json({"value": written})
    assert len(seen) == 300
    assert max(seen) <= 1


def test_the_error_comes_from_the_only_member_that_may_fit() -> None:
    with pytest.raises(InvalidArgument, match=r"^work: value\[1\]\.name must be an int, got 'x'"):
        of(list[Branch] | None).from_json(
            {"value": [{"children": [], "name": 1}, {"children": [], "name": "x"}]}
        )


NAMES = ("A", "B", "C")
SCALAR_TYPES = (int, str, None, bool)


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """Draw a union of dataclasses whose fields are unions of these, of scalars, or lists of such unions."""
    space: dict[str, Any] = {}
    classes: list[Any] = []
    for name in NAMES:
        fields: list[Any] = []
        for field_name in draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True)):
            members = draw(
                st.lists(st.sampled_from([*NAMES, "int", "str", "None"]), min_size=1, max_size=3, unique=True)
            )
            hint = " | ".join(members)
            hint = f"list[{hint}]" if draw(st.booleans()) else hint
            default: Any = field(default=None) if draw(st.booleans()) else dataclasses.MISSING
            fields.append((field_name, hint, default))
        fields.sort(key=lambda one: one[2] is not dataclasses.MISSING)
        kind = make_dataclass(
            name,
            [
                (one, hint) if default is dataclasses.MISSING else (one, hint, default)
                for one, hint, default in fields
            ],
        )
        kind.__module__ = __name__
        space[name] = kind
        classes.append(kind)
    globals().update(space)
    return Union[tuple(classes)]  # noqa: UP007 - from a list


JSON_VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=20,
)


def size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values()))
    return 1 + sum(map(size, value)) if isinstance(value, list) else 1


class Forgetful(dict[Any, Any]):
    """Computes each result again."""

    def __contains__(self, key: object) -> bool:
        return False


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read().args
    except InvalidArgument as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_unions_are_read_in_few_steps_with_the_same_result(data: st.DataObject) -> None:
    try:
        arguments = of(data.draw(graphs()))
        value = data.draw(JSON_VALUES)
        assume(size(value) > 3)
        found = outcome(lambda: arguments.from_json({"value": value}))
        count = steps(lambda: arguments.from_json({"value": value}))
        # Each converter converts each value once: the records, their fields, and unions of these.
        assert count < 60 * 12 * size(value)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ValuePath, "in_union", forgetful)
            assert outcome(lambda: arguments.from_json({"value": value})) == found
    finally:
        for name in NAMES:
            globals().pop(name, None)


def forgetful(path: Any) -> Any:
    if path._results is None:
        path = ValuePath(path._part, path._parent, is_key=path._is_key)
        path._results = Forgetful()
    return path
