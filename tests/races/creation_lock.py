"""Stops a session just before it takes the creation lock of a channel's row or turn."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.races.sessions import Session, value, wait_for

STOPPING_LOCK = """
    alter function creation_lock rename to original_creation_lock;
    create function creation_lock(p_kind text, p_id bigint) returns boolean
    language plpgsql as $$
      begin
        if current_setting('barrier.stops', true) = 'on' then
          perform pg_advisory_xact_lock_shared(4711);
        end if;
        return original_creation_lock(p_kind, p_id);
      end
    $$;
"""
WAITING = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"


@contextmanager
def stop_at_creation_lock(barrier: Session, session: Session, call: Callable[[], object]) -> Iterator[None]:
    """Run `call`, which uses `session`, in a thread that is stopped for the block and must then finish."""
    barrier.execute(STOPPING_LOCK)
    session.execute("set barrier.stops = on")
    barrier.execute("select pg_advisory_lock(4711)")
    thread = threading.Thread(target=call)
    thread.start()
    try:
        wait_for(lambda: value(barrier, WAITING) == 1)
        yield
    finally:
        barrier.execute("select pg_advisory_unlock(4711)")
        thread.join(timeout=20)
    assert not thread.is_alive(), "the call did not finish after it was released"
