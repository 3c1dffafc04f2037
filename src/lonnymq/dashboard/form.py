"""The fields of a form, which are bounded in number and length."""

import asyncio
import re
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from lonnymq.dashboard.refusal import Refused

MAX_BODY_BYTES = 65_536
MAX_FIELDS = 2_000
# How long a browser may take to send a form.
MAX_SEND_S = 10.0


class Form:
    """The fields of a form. A value that is missing or too long is refused with what is allowed."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, *, high: int = 255) -> str:
        """Return a field without surrounding spaces; an empty text if it is missing."""
        value = self._fields.get(name, [""])[0].strip()
        if len(value) > high:
            raise Refused(
                400, f"{name} is too long", f"At most {high} characters are allowed. Nothing was changed."
            )
        return value

    def exact(self, name: str) -> str:
        """Return a field as it was sent, such as a name that may begin with a space."""
        return self._fields.get(name, [""])[0]

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if the field is empty."""
        value = self.text(name, high=20).replace(",", "")
        if not value:
            return None
        if re.fullmatch(r"-?[0-9]+", value) is None:
            raise Refused(400, f"{name} must be a whole number", f"It is {value!r}. Nothing was changed.")
        return int(value)

    def flag(self, name: str) -> bool:
        return name in self._fields

    def texts(self, name: str) -> list[str]:
        """Return all values of a field that occurs several times."""
        return self._fields.get(name, [])

    def require_typed(self, expected: str, name: str = "typed") -> None:
        """Refuse unless the user typed what the page asked for, such as the number of messages."""
        if self.text(name) != expected:
            raise Refused(400, "Nothing was changed", f"To confirm, type {expected} into the field.")


async def read_form(request: Request) -> Form:
    """Read a form as browsers send it without files."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "This is not a form", "Only application/x-www-form-urlencoded is accepted.")
    body = b""
    try:
        async with asyncio.timeout(MAX_SEND_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise Refused(
                        413, "The form is too long", f"At most {MAX_BODY_BYTES:,} bytes are allowed."
                    )
    except (ClientDisconnect, TimeoutError):
        raise Refused(408, "The form did not arrive in time", "Nothing was changed. Send it again.") from None
    try:
        fields = parse_qs(
            body.decode("utf-8", "replace"),
            keep_blank_values=True,
            max_num_fields=MAX_FIELDS,
            errors="replace",
        )
    except ValueError:
        raise Refused(413, "The form has too many fields", f"At most {MAX_FIELDS:,} are allowed.") from None
    return Form(fields)
