"""Text from strangers, made harmless as JSON and in a command that is advised. Pure."""

import json
import shlex
from typing import Any

from lonnymq.texts import escaped, visible


def json_text(value: Any) -> str:
    """Return a value as JSON on one line that can be shown: what `visible` would change is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    # Such characters occur in strings only: JSON's own are plain.
    return escaped(text, "", lambda character: json.dumps(character)[1:-1])


def shell(name: str) -> str:
    """Return a name as an argument that can be copied into a shell."""
    quoted = shlex.quote(name)
    if visible(name, keep="") != name:
        inner = escaped(name.replace("\\", "\\\\").replace("'", "\\'"), "", _code)
        quoted = f"$'{inner}'"
    return f"-- {quoted}" if name.startswith("-") else quoted


def sql_text(text: str) -> str:
    """Return a text as a literal that can be copied into SQL."""
    if visible(text, keep="") == text and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "E'" + escaped(text.replace("\\", "\\\\").replace("'", "''"), "", _code) + "'"


def sql_name(name: str) -> str:
    """Return a name as an identifier that can be copied into SQL."""
    return '"' + name.replace('"', '""') + '"'


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
