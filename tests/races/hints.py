"""Changes the hints that a session keeps between dequeues, as if its last full scan had been expensive."""

import time

from tests.races.sessions import Session, value

NAME = "'lonnymq.hints_3_' || 'turn'::regclass::oid"


def pretend_expensive_scan(session: Session, cost_s: float) -> None:
    """Make the session believe that a full scan has just taken `cost_s`: it uses its hints for a while."""
    hints = value(session, f"select current_setting({NAME})").split(",")
    hints[0] = "(" + str(int(time.time() * 1_000_000))
    hints[1] = str(int(cost_s * 1_000_000))
    session.execute(f"select set_config({NAME}, %s, false)", [",".join(hints)])
