"""Commands that change something record it in the same transaction, if their role may."""

import getpass
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lonnymq import BorrowedConnection, Queue
from lonnymq.cli.connect import open_queue

MAX_ACTOR = 255
MAX_LISTED = 100
MAX_NAMES_BYTES = 4000
# How many messages a command changes in one transaction.
BATCH = 10_000


@dataclass
class Acting:
    """An action in progress: call the queue with `connection`, and add to `outcomes` what came of it."""

    queue: Queue
    connection: BorrowedConnection | None = None
    outcomes: list[str] = field(default_factory=list)
    is_recorded: bool = True


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
            acting = Acting(queue, action.connection, action.outcomes)
            yield acting
            action.is_recorded = acting.is_recorded


def act_in_batches(
    dsn: str,
    schema: str,
    verb: str,
    subject: str,
    arguments: Mapping[str, Any],
    outcome: str,
    run: Callable[[Acting], int],
) -> int:
    """Act until `run` has nothing left to do, each time in a transaction of its own with its own record.

    So an action on very many messages keeps no transaction open for long. Returns the sum.
    """
    total = 0
    while True:
        with act(dsn, schema, verb, subject, arguments) as acting:
            count = run(acting)
            acting.outcomes += [outcome] * count
            acting.is_recorded = count > 0 or total == 0
        if count == 0:
            return total
        total += count


def described_ids(ids: Sequence[int]) -> tuple[str | None, dict[str, Any]]:
    """Return subject and arguments of an action on messages; of many, the record lists the first ones."""
    if len(ids) == 1:
        return str(ids[0]), {}
    return None, {"count": len(ids), "ids": [str(id_) for id_ in ids[:MAX_LISTED]]}


def first_names(names: Sequence[str]) -> list[str]:
    """Return the first names, as many as a record has room for."""
    found: list[str] = []
    room = MAX_NAMES_BYTES
    for name in names:
        room -= len(json.dumps(name))
        if room < 0:
            break
        found.append(name)
    return found


def _actor() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # The user has no name, as in some containers.
        user = "lonnymq"
    return f"{user}@{socket.gethostname()}"[:MAX_ACTOR]
