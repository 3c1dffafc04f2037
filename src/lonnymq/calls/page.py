"""Pages: rows that begin with the cursor of the next page, and have nulls for an item if there is none."""

from collections.abc import Callable
from typing import Any, TypeVar

from lonnymq.calls.statement import Rows
from lonnymq.model import Page, PageCursor

Item = TypeVar("Item")


def page_of(rows: Rows, decode: Callable[[tuple[Any, ...]], Item]) -> Page[Item]:
    next_id, next_at = rows[0][:2]
    items = [decode(row[2:]) for row in rows if row[2] is not None]
    return Page(items, None if next_id is None else PageCursor(next_id, next_at))
