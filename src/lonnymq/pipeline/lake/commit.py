"""Decides whether a batch is committed: batches are committed once and in order, or raise an error."""

from collections.abc import Callable
from dataclasses import dataclass

from lonnymq.errors import LonnyError


class LakeConflict(LonnyError):
    """The batch does not follow the lake's last one, or another writer was faster; nothing was written."""


@dataclass(frozen=True)
class Batch:
    """Identifies a commit: the writer, and a number that grows with each of its commits."""

    writer: str
    number: int


def is_new(batch: Batch, owner: Batch | None, last_batch: Callable[[str], int | None], path: str) -> bool:
    """Whether to write the batch; the last one is repeated if a writer crashed before it saw its commit."""
    if owner is not None and last_batch(owner.writer) not in (None, owner.number):
        raise LakeConflict(
            f"{path} was written by another stream; a new checkpoint would archive all history again. "
            "Use the checkpoint that belongs to this lake, or start a new lake"
        )
    last = last_batch(batch.writer)
    if last is None or batch.number > last:
        return True
    if batch.number == last:
        return False
    raise LakeConflict(
        f"{path} has batch {last} of {batch.writer!r}, but batch {batch.number} was sent: the checkpoint was "
        "reset or restored, so rows would be missing or repeated. Use the checkpoint that belongs to this "
        "lake, or start a new lake"
    )
