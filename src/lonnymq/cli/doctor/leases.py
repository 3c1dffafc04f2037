"""Messages that have been worked for very long. Pure."""

from collections.abc import Iterator

from lonnymq.cli import words
from lonnymq.cli.doctor.finding import MOST_NAMED, Finding, Level
from lonnymq.schema.examine import Examination


def long_work(facts: Examination) -> Iterator[Finding]:
    for one in facts.leases[:MOST_NAMED]:
        whose = f" of {one.channel!r}" if one.channel is not None else ""
        yield Finding(
            Level.WARNING,
            "long work",
            f"message {one.message_id}{whose} has been worked for {words.span(one.held_s)}"
            f" by {one.worker or 'a worker without a name'}",
            "if its handler hangs: end that worker, and the message goes to another; a time limit for the"
            " task prevents it",
        )
    more = len(facts.leases) - MOST_NAMED
    if more > 0:
        yield Finding(Level.WARNING, "long work", f"and {more} more of these", "lonnymq peek --leased")
