"""Pages of a long list, newest first."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class PageCursor:
    """Where the next page begins. As text, for a URL or a command line, it is `str(cursor)`."""

    id: int
    at: int

    def __str__(self) -> str:
        return f"{self.id}_{self.at}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor that `str()` turned into this text; ValueError if it did not."""
        found = re.fullmatch(r"(-?[0-9]{1,19})_(-?[0-9]{1,19})", text)
        numbers = [int(one) for one in found.groups()] if found else []
        if not numbers or not all(-(2**63) <= one < 2**63 for one in numbers):
            raise ValueError("a cursor must be as a page returned it: two numbers such as 12_34")
        return cls(*numbers)


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items, and where the next page begins; `next` is None on the last page.

    A page may be shorter than asked for, or empty, and not be the last one, because the search for items that
    match a filter is bounded.
    """

    items: list[Item]
    next: PageCursor | None


@dataclass(frozen=True)
class IdPage(Page[int]):
    """Ids, and when they were read, by the server's clock.

    To change only what was seen then, pass `at` as `before`: a dead letter that was redriven and has failed
    again has the same id.
    """

    at: datetime
