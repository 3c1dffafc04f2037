"""Exit codes: scripts decide by these, never by words."""

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    # The answer is no: there is no such thing, it was refused, problems were found, or nobody confirmed.
    NO = 1
    # A wrong option, argument or input; nothing was changed.
    USAGE = 2
    # The server could not be reached, or the connection was lost.
    UNREACHABLE = 3
    # The queue's schema is missing, too old or too new.
    SCHEMA = 4
    # The role may not do this.
    NOT_PERMITTED = 5
    # Another transaction had it locked for too long: try again.
    BUSY = 6
    # The database said something nobody here expected.
    DATABASE = 7
    # A bug of ours.
    INTERNAL = 70
    INTERRUPTED = 130
