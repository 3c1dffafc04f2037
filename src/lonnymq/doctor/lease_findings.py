"""Findings about messages that have been leased for very long."""

from collections.abc import Iterator

from lonnymq import formatting
from lonnymq.diagnostics import Examination
from lonnymq.doctor.finding import MAX_LISTED, Finding, Level


def long_leases(facts: Examination) -> Iterator[Finding]:
    for one in facts.leases[:MAX_LISTED]:
        whose = f" of {one.channel!r}" if one.channel is not None else ""
        yield Finding(
            Level.WARNING,
            "leases",
            f"message {one.message_id}{whose} has been leased for {formatting.duration(one.held_s)}"
            f" by {one.worker or 'an unnamed worker'}",
            "if its handler hangs, end that worker, and another one gets the message; a timeout for the task"
            " prevents this",
        )
    more = len(facts.leases) - MAX_LISTED
    if more > 0:
        yield Finding(Level.WARNING, "leases", f"and {more} more", "lonnymq peek --leased")
