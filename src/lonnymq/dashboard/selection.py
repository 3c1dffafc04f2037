"""What a user selected and confirms: the ids that were seen, in a field of the form that confirms them."""

import base64
import binascii
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from lonnymq.calls import argument
from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused

MAX_IDS = 10_000
# A form has room for a little more (see form.py).
MAX_TEXT = 60_000
MAX_BYTES = 10 * MAX_IDS
BROKEN = Refused(400, "The selection is not valid", "Nothing was changed. Load the page again.")


def encode_ids(ids: Sequence[int]) -> str:
    """Return ids as a short text: the differences between those that follow one another, compressed."""
    found, last = bytearray(), 0
    for id_ in sorted(set(ids)):
        # The first one may be negative.
        difference = id_ - last if found else _fold(id_)
        last = id_
        while difference > 0x7F:
            found.append(difference & 0x7F | 0x80)
            difference >>= 7
        found.append(difference)
    return base64.urlsafe_b64encode(zlib.compress(bytes(found), 9)).decode("ascii")


def select(ids: Sequence[int]) -> tuple[list[int], str]:
    """Return the first ids, as many as fit into a form, which is nearly always all, and their text."""
    chosen = list(ids)
    while len(text := encode_ids(chosen)) > MAX_TEXT:
        chosen = chosen[: len(chosen) // 2]
    return chosen, text


def decode_ids(text: str) -> list[int]:
    """Return the ids that `encode_ids()` turned into this text, in ascending order."""
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, b"-_", validate=True), MAX_BYTES)
    except (binascii.Error, ValueError, zlib.error):
        raise BROKEN from None
    if not stream.eof or not data or data[-1] & 0x80:
        raise BROKEN
    ids: list[int] = []
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            ids.append(ids[-1] + value if ids else _unfold(value))
            value, shift = 0, 0
        elif shift > 63:
            raise BROKEN
    if len(ids) > MAX_IDS or ids[-1] >= 2**63 or ids[0] < -(2**63):
        raise BROKEN
    return ids


def encode_instant(at: datetime) -> str:
    """Return an instant as whole milliseconds."""
    return str((at - argument.EPOCH) // timedelta(milliseconds=1))


def seen_at(form: Form) -> datetime:
    """Return when the page was read: what was redriven and has failed again since has the same id."""
    try:
        return argument.instant(form.whole("seen") or 0)
    except (OverflowError, ValueError):
        raise BROKEN from None


def _fold(value: int) -> int:
    return value * 2 if value >= 0 else -value * 2 - 1


def _unfold(value: int) -> int:
    return -(value + 1) // 2 if value & 1 else value // 2
