"""Exit codes of commands, for scripts; `lonnymq work` has the worker's own (`lonnymq.ExitCode`)."""

from enum import IntEnum


class CommandExit(IntEnum):
    DONE = 0
    # The answer is no: not found, refused, not healthy, or not confirmed.
    NO = 1
    # Wrong option, argument or input; nothing was changed.
    USAGE = 2
    # The server could not be reached, or the connection was lost.
    UNREACHABLE = 3
    # The queue's schema is missing, too old or too new.
    SCHEMA = 4
    # The role lacks a privilege.
    NOT_PERMITTED = 5
    # Another transaction held the lock for too long: try again.
    BUSY = 6
    # The database reported an error that has no code of its own here.
    DATABASE = 7
    # A bug in LonnyMQ.
    INTERNAL = 70
    INTERRUPTED = 130
