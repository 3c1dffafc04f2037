"""When a batch counts: once, in order, or an error."""

from collections.abc import Callable
from dataclasses import dataclass

from lonnymq.errors import LonnyError


class LakeConflict(LonnyError):
    """The lake knows this writer, and what it wants to write now does not follow: nothing was written."""


@dataclass(frozen=True)
class Batch:
    """The name of a commit: a writer, and a number that grows with each."""

    writer: str
    number: int


def is_new(batch: Batch, owner: Batch | None, last_batch: Callable[[str], int | None], place: str) -> bool:
    """Whether to write the batch; the last one again comes of a crash before its writer knew, and is done."""
    if owner is not None and last_batch(owner.writer) not in (None, owner.number):
        raise LakeConflict(
            f"{place} was written by another stream: with a new checkpoint all history would come again. "
            "Give the checkpoint that belongs to this lake, or begin another lake"
        )
    last = last_batch(batch.writer)
    if last is None or batch.number > last:
        return True
    if batch.number == last:
        return False
    raise LakeConflict(
        f"{place} has batch {last} of {batch.writer!r}, and now comes batch {batch.number}: its checkpoint "
        "was reset or restored, and rows would be missing or come twice. Go on with the checkpoint that "
        "belongs to this lake, or begin another lake"
    )
