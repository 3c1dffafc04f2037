"""What a session remembers between its dequeues, as if its last full look had been expensive."""

import time

from tests.races.sessions import Session, value

NAME = "'lonnymq.hints_2_' || 'turn'::regclass::oid"


def look_was_expensive(session: Session, cost_s: float) -> None:
    """The session has just looked at everything, and that took so long: it goes by its hints for a while."""
    hints = value(session, f"select current_setting({NAME})").split(",")
    hints[0] = "(" + str(int(time.time() * 1_000_000))
    hints[1] = str(int(cost_s * 1_000_000))
    session.execute(f"select set_config({NAME}, %s, false)", [",".join(hints)])
