"""Formats texts and values from outside for display, logs and storage: short, and harmless to a terminal.

Text that is cut off is never computed: a name of 20 MB must not be escaped first.
"""

import dataclasses
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

MAX_VALUE = 100
MAX_LINE = 300
# Computing the digits of a larger int takes noticeable time.
MAX_INT_BITS = 10_000
MAX_DEPTH = 4
# Control and format characters, surrogates, private and unassigned ones, line and paragraph separators.
HIDDEN_KINDS = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
# Letters and marks that are invisible.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
BRACKETS: dict[Any, tuple[str, str]] = {
    list.__repr__: ("[", "]"),
    tuple.__repr__: ("(", ")"),
    set.__repr__: ("{", "}"),
    frozenset.__repr__: ("frozenset({", "})"),
    dict.__repr__: ("{", "}"),
}


def truncate(text: str, most: int) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= most else text[: most - 3] + "..."


def abridge(text: str, most: int) -> str:
    """Return the beginning and the end of a text, which are the most useful parts of a traceback."""
    if len(text) <= most:
        return text
    half = (most - 50) // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


def escape_hidden(text: str, *, keep: str = "\n\t") -> str:
    """Escape control and invisible characters: names and errors come from untrusted sources."""
    return replace_hidden(text, keep, lambda character: character.encode("unicode_escape").decode("ascii"))


def replace_hidden(text: str, keep: str, escape: Callable[[str], str]) -> str:
    """Escape control and invisible characters with `escape`, except those in `keep`."""
    if text.isprintable() and BLANKS.isdisjoint(text):
        return text
    return "".join(
        escape(character) if character not in keep and _is_hidden(character) else character
        for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN_KINDS or character in BLANKS


def one_line(text: str, most: int = MAX_LINE) -> str:
    """Format a text as one line of a log."""
    return escape_hidden(truncate(text, most), keep="")


def list_names(names: Iterable[object], most: int = 5) -> str:
    """Return the first names, each as its repr, and how many more there are."""
    names = list(names)
    shown_names = ", ".join(short_repr(name, 60) for name in names[:most])
    return shown_names if len(names) <= most else f"{shown_names} and {len(names) - most} more"


def short_repr(value: Any, most: int = MAX_VALUE) -> str:
    """Return the beginning of a value's repr."""
    try:
        return truncate(_written(value, most, MAX_DEPTH), most)
    except Exception:  # noqa: BLE001 - a user-defined __repr__ may raise anything
        return f"a value of type {truncate(type(value).__name__, 60)} that cannot be shown"


def _written(value: Any, room: int, depth: int) -> str:
    """Return repr(value), or a beginning of it that is longer than `room` characters."""
    kind = type(value)
    if isinstance(value, str | bytes | bytearray) and len(value) > room:
        return repr(value[: room + 1])
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        raise ValueError("too many digits")
    if isinstance(value, Mapping | Set | Sequence | deque) and not isinstance(
        value, str | bytes | bytearray | range | memoryview
    ):
        if not value:
            return repr(value)
        begin, end = BRACKETS.get(kind.__repr__, (f"{kind.__name__}([", "])"))
        return begin + _items(value, room, depth) + ("," if begin == "(" and len(value) == 1 else "") + end
    # Only generated reprs: a class with a custom one may hide secrets.
    if dataclasses.is_dataclass(kind) and hasattr(kind.__repr__, "__wrapped__"):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(kind) if one.repr}
        return f"{kind.__qualname__}({_items(fields, room, depth, '=')})"
    return repr(value)


def _items(value: Any, room: int, depth: int, colon: str = ": ") -> str:
    """Return the items of a collection, as many as fit into `room` characters."""
    if not depth:
        return "..." if value else ""
    items: list[str] = []
    for key in value:
        if room < 0:
            break
        item = _written(key, room, depth - 1) if colon == ": " else key
        if isinstance(value, Mapping):
            item += colon + _written(value[key], max(room - len(item), 0), depth - 1)
        items.append(item)
        room -= len(item) + 2
    return ", ".join(items)
