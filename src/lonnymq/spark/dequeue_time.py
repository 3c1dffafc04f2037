"""Encodes when a message is due: a time, or a priority."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lonnymq.errors import InvalidArgument
from lonnymq.spark.columns import FIRST_PLAUSIBLE_MS, LAST_PLAUSIBLE_MS, PLAUSIBLE_YEARS


def encode_dequeue_at(at: Any, priority: Any, *, allows_any_time: bool) -> Any:
    """Return one number for time and priority: a priority is negative, so it sorts before every time."""
    if at is not None:
        at = _to_milliseconds(at)
        if not allows_any_time:
            _refuse_implausible(at)
    if priority is None:
        return at
    lowest = pc.min(priority).as_py()
    if lowest is not None and lowest < 1:
        raise InvalidArgument(f"column priority must be at least 1, got {lowest}")
    first = pc.negate(priority.cast(pa.int64()))
    if at is None:
        return first
    if pc.any(pc.and_(pc.is_valid(at), pc.is_valid(priority))).as_py():
        raise InvalidArgument("dequeue_at and priority must not both be given, but a row has both")
    return pc.coalesce(at, first)


def _to_milliseconds(at: Any) -> Any:
    if not pa.types.is_timestamp(at.type):
        return at.cast(pa.int64())
    microseconds = at.cast(pa.timestamp("us", at.type.tz)).cast(pa.int64())
    floored = microseconds.fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return pa.array(floored, mask=pc.is_null(at).to_numpy(zero_copy_only=False))


def _refuse_implausible(at: Any) -> None:
    """Refuse a time that is probably a mistake; before 1970 it would silently become a priority."""
    for found in pc.min_max(at).as_py().values():
        if found is not None and not FIRST_PLAUSIBLE_MS <= found <= LAST_PLAUSIBLE_MS:
            first, last = PLAUSIBLE_YEARS
            raise InvalidArgument(
                f"column dequeue_at has the time {found} (milliseconds since 1970), which is not in the years"
                f' {first} to {last}: correct it, or allow any time with option("any_time", "true"); a time'
                " before 1970 is then a priority"
            )
