"""Commands that change something record it in the same transaction, if their role may."""

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lonnymq import BorrowedConnection, Queue
from lonnymq.cli.connect import open_queue

MAX_ACTOR = 255
MAX_LISTED = 100


@dataclass
class Acting:
    """An action in progress: call the queue with `connection`, and add to `outcomes` what came of it."""

    queue: Queue
    connection: BorrowedConnection | None = None
    outcomes: list[str] = field(default_factory=list)


@contextmanager
def act(
    dsn: str, schema: str, verb: str, subject: str | None = None, arguments: Mapping[str, Any] | None = None
) -> Iterator[Acting]:
    """Open the queue for one action and record it; a role that may not record acts without a record.

    `verb` is the name of the queue's call. Only operators may record; producers may cancel messages, too.
    """
    with open_queue(dsn, schema) as queue:
        if not queue.audit.may_record():
            yield Acting(queue)
            return
        with queue.audit.action(_actor(), verb, subject, arguments) as action:
            yield Acting(queue, action.connection, action.outcomes)


def described_ids(ids: Sequence[int]) -> tuple[str | None, dict[str, Any]]:
    """Return subject and arguments of an action on messages; of many, the record lists the first ones."""
    if len(ids) == 1:
        return str(ids[0]), {}
    return None, {"count": len(ids), "ids": [str(id_) for id_ in ids[:MAX_LISTED]]}


def _actor() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # The user has no name, as in some containers.
        user = "lonnymq"
    return f"{user}@{socket.gethostname()}"[:MAX_ACTOR]
