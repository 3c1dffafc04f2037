"""Headers of messages: a flat JSON object of strings."""

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from lonnymq.calls import argument
from lonnymq.errors import invalid
from lonnymq.texts import short_repr

MAX_BYTES = 8192
MAX_NAME_CHARACTERS = 255
# When its message is buried, a notice is created in the channel that this header names: see dead_insert.sql.
ON_BURIED = "lonnymq-on-buried"
# The header of a notice that has the id of the message that was buried.
BURIED_ID = "lonnymq-buried-id"
# Why, and whether that was because the lease of its last attempt expired.
BURIED_ERROR = "lonnymq-buried-error"
BURIED_EXPIRED = "lonnymq-buried-expired"


def encode_headers(headers: Any) -> str | None:
    """Check headers and return them as JSON, or None if there are none; an error names the header."""
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise invalid("headers", headers, "a mapping of strings to strings")
    size = 0
    for name, value in headers.items():
        argument.text("the name of a header", name, 1, MAX_NAME_CHARACTERS)
        if any(unicodedata.category(character) == "Cc" for character in name):
            raise invalid("the name of a header", name, "1 to 255 characters without control characters")
        argument.text(f"header {short_repr(name)}", value)
        size += len(name) + len(value)
        # Look at no more of them than may be too large.
        if size > MAX_BYTES:
            raise invalid("headers", f"more than {MAX_BYTES} bytes", f"at most {MAX_BYTES} bytes as JSON")
    if ON_BURIED in headers:
        argument.channel(headers[ON_BURIED], f"header {ON_BURIED}")
    # PostgreSQL prints jsonb with the same spaces and escapes, so the size is the same, too.
    text = json.dumps(dict(headers), ensure_ascii=False)
    size = len(text.encode("utf-8"))
    if size > MAX_BYTES:
        raise invalid("headers", f"{size} bytes", f"at most {MAX_BYTES} bytes as JSON")
    return text if headers else None


def decode_headers(text: str | None) -> Mapping[str, str]:
    return {} if text is None else json.loads(text)
