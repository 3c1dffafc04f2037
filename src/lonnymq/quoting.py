"""Quote untrusted text for JSON output, and for the shell and SQL commands that hints contain."""

import json
import shlex
from typing import Any

from lonnymq.texts import escape_hidden, replace_hidden


def json_line(value: Any) -> str:
    """Return a value as JSON on one line; characters that `escape_hidden` would change are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    # Such characters can occur only inside strings: JSON's syntax is ASCII.
    return replace_hidden(text, "", lambda character: json.dumps(character)[1:-1])


def shell_argument(name: str) -> str:
    """Return a name as one argument of a shell command."""
    quoted = shlex.quote(name)
    if escape_hidden(name, keep="") != name:
        inner = replace_hidden(name.replace("\\", "\\\\").replace("'", "\\'"), "", _unicode_escape)
        quoted = f"$'{inner}'"
    return f"-- {quoted}" if name.startswith("-") else quoted


def sql_literal(text: str) -> str:
    """Return a text as an SQL literal."""
    if escape_hidden(text, keep="") == text and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "E'" + replace_hidden(text.replace("\\", "\\\\").replace("'", "''"), "", _unicode_escape) + "'"


def sql_identifier(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _unicode_escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
