"""Untrusted texts: bounded, harmless to a terminal, and never computed in full only to be cut."""

import json
import logging
import tracemalloc
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lonnymq import JSON, Bury, DecodeError, Defer, Handler, InvalidArgument
from lonnymq.calls import argument, codec
from lonnymq.calls.acknowledge import acknowledge
from lonnymq.cli import log
from lonnymq.errors import invalid
from lonnymq.model.acknowledge import BURY, DEFER
from lonnymq.texts import abridge, escape_hidden, list_names, one_line, short_repr, truncate
from lonnymq.worker.verdict import Judge, format_traceback

MEGABYTE = 1_000_000
HUGE = "\x1b\0é" * MEGABYTE
# Characters that control a terminal or end a line: C0, C1, bidirectional overrides, separators, surrogates.
UNSAFE = "\x00\x07\x1b\x7f\x85\x9b\u200e\u202e\u2028\u2029\ud800"


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


@dataclass
class Holder:
    value: Any
    secret: str = field(default="hidden", repr=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.builds(Holder, inner)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_a_short_value_is_shown_as_python_writes_it(value: Any) -> None:
    written = repr(value)
    # Below a certain depth, only an ellipsis is shown.
    if len(written) <= 100 and written.count("[") + written.count("(") + written.count("{") <= 4:
        assert short_repr(value) == written
    assert len(short_repr(value)) <= 100


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (set(), "set()"),
        ({1}, "{1}"),
        (frozenset({1}), "frozenset({1})"),
        (deque([1, 2]), "deque([1, 2])"),
        (Holder("x"), "Holder(value='x')"),
        (10**5000, "a value of type int that cannot be shown"),
        (nested(100_000), "[[[[[...]]]]]"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_collections_and_special_values_are_shown(value: Any, expected: str) -> None:
    assert short_repr(value) == expected


class Unshowable:
    def __repr__(self) -> str:
        raise KeyError("no")


def test_a_value_whose_repr_fails_is_still_refused_with_an_error() -> None:
    assert str(invalid("x", Unshowable(), "y")).endswith("a value of type Unshowable that cannot be shown")


LARGE: list[Any] = [
    HUGE,
    HUGE.encode(),
    [HUGE, HUGE],
    {HUGE: HUGE},
    (HUGE,),
    Holder(HUGE),
    deque([HUGE]),
    list(range(MEGABYTE)),
    {"a": {"b": [HUGE]}},
]
MAKERS: dict[str, Callable[[Any], object]] = {
    "short_repr": short_repr,
    "invalid": lambda value: invalid("argument", value, "small"),
    "one_line": lambda value: one_line(value) if isinstance(value, str) else "",
    "list_names": lambda value: list_names([value]),
    "error_text": lambda value: argument.error_text(value) if isinstance(value, str) else "",
    "bury": lambda value: Bury(value) if isinstance(value, str) else "",
    "bury sent": lambda value: acknowledge(BURY, [1], [1], [value]) if isinstance(value, str) else "",
    "defer sent": lambda value: (
        acknowledge(DEFER, [1], [1], [1], [None], [value]) if isinstance(value, str) else ""
    ),
    "too long": lambda value: refused(argument.text, "name", value, 1, 255),
}


def refused(call: Callable[..., object], *arguments: Any) -> None:
    with suppress(InvalidArgument):
        call(*arguments)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
def test_text_that_is_cut_off_is_never_computed(value: Any, make: Callable[[Any], object]) -> None:
    """Escaping 20 MB of control characters took 20 seconds and gigabytes."""
    tracemalloc.start()
    try:
        make(value)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEGABYTE


@pytest.mark.parametrize("made", [10, 9_999, 10_000, 10_001, 50_000])
@pytest.mark.parametrize("character", ["x", "\0", "\ud800", "\n"])
def test_a_stored_error_is_bounded_even_after_escaping(made: int, character: str) -> None:
    text = argument.error_text(character * made)
    assert text is not None
    assert 0 < len(text) <= argument.MAX_ERROR_CHARACTERS
    assert "\0" not in text
    assert text.encode("utf-8")
    # A text that is already bounded is sent unchanged.
    assert argument.error_text(text) == text


@given(st.text(st.characters(), max_size=300), st.integers(60, 200))
def test_a_cut_text_is_within_its_limit(text: str, most: int) -> None:
    assert len(truncate(text, most)) <= most
    assert len(abridge(text, most)) <= most
    assert truncate(text, 300) == abridge(text, 300) == text


@given(st.text(st.characters() | st.sampled_from(UNSAFE)))
def test_a_log_line_contains_no_terminal_control_characters(text: str) -> None:
    written = one_line(text)
    assert not set(written) & {*UNSAFE, "\n", "\r", "\t"}
    assert len(written.splitlines()) <= 1
    assert escape_hidden(written) == written


def test_command_line_output_has_no_terminal_control_characters() -> None:
    error = RuntimeError(f"odd{UNSAFE}")
    record = logging.LogRecord(
        "lonnymq", logging.ERROR, "", 0, "of %s", (UNSAFE,), (RuntimeError, error, None)
    )
    record.channel = UNSAFE
    for formatter in (log.TextFormatter(), log.JsonFormatter()):
        written = formatter.format(record)
        assert not set(written) & set(UNSAFE)
    parsed = json.loads(written)
    assert parsed["channel"] == UNSAFE
    assert parsed["message"] == f"of {UNSAFE}"


def test_a_traceback_is_bounded_however_long_its_error_is() -> None:
    for error in (RuntimeError(HUGE), Defer(error=HUGE), KeyError("x" * MEGABYTE)):
        assert len(format_traceback(error)) <= argument.MAX_ERROR_CHARACTERS
    verdict = Judge(JSON).verdict(Handler(call=lambda message: None), 1, Defer(error=HUGE), None)
    assert len(verdict.error or "") <= argument.MAX_ERROR_CHARACTERS


class Hostile(codec.JsonCodec):
    def decode(self, content: bytes) -> Any:
        raise LookupError(HUGE)


def test_any_exception_of_a_codec_becomes_a_bounded_decode_error() -> None:
    with pytest.raises(DecodeError, match=r"^the codec cannot decode the state of message 7: ") as caught:
        codec.decode_content(b"", Hostile(), "state", 7)
    assert len(str(caught.value)) < 400


def test_a_handlers_name_is_bounded() -> None:
    def handle(message: Any) -> None: ...

    handle.__qualname__ = HUGE
    assert len(Handler(call=handle).name) == 255
    with pytest.raises(InvalidArgument, match="name must be 0 to 255 characters"):
        Handler(call=handle, name="x" * 256)
