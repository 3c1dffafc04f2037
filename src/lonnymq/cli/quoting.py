"""Text from strangers, made harmless: for a terminal, as JSON, in a command that is advised. Pure."""

import json
import shlex
import unicodedata
from collections.abc import Callable
from typing import Any

# Characters that steer a terminal, turn the direction of text, break lines or have no agreed shape.
HIDDEN_KINDS = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
# Letters and marks that show nothing.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


def visible(text: str, *, keep: str = "\n\t") -> str:
    """Return text that can neither steer a terminal nor hide in it: names and errors come from strangers."""
    return _escaped(text, keep, lambda character: character.encode("unicode_escape").decode("ascii"))


def json_text(value: Any) -> str:
    """Return a value as JSON on one line that can be shown: what `visible` would change is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    # Such characters occur in strings only: JSON's own are plain.
    return _escaped(text, "", lambda character: json.dumps(character)[1:-1])


def shell(name: str) -> str:
    """Return a name as an argument that can be copied into a shell."""
    quoted = shlex.quote(name)
    if visible(name, keep="") != name:
        inner = _escaped(name.replace("\\", "\\\\").replace("'", "\\'"), "", _code)
        quoted = f"$'{inner}'"
    return f"-- {quoted}" if name.startswith("-") else quoted


def sql_text(text: str) -> str:
    """Return a text as a literal that can be copied into SQL."""
    if visible(text, keep="") == text and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "E'" + _escaped(text.replace("\\", "\\\\").replace("'", "''"), "", _code) + "'"


def sql_name(name: str) -> str:
    """Return a name as an identifier that can be copied into SQL."""
    return '"' + name.replace('"', '""') + '"'


def _escaped(text: str, keep: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and BLANKS.isdisjoint(text):
        return text
    return "".join(
        escape(character) if character not in keep and _is_hidden(character) else character
        for character in text
    )


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN_KINDS or character in BLANKS
