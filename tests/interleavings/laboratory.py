"""A database with the rewritten queue, and the connection that controls and judges its sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from lonnymq.schema import files
from tests.interleavings.instrument import Instrument
from tests.interleavings.sessions import Control, SteppedSession
from tests.interleavings.states import HINTS, States

SUPPORT = Path(__file__).with_name("support.sql").read_text(encoding="utf-8")
OPTIONS = "-c search_path=lonnymq -c synchronous_commit=off -c deadlock_timeout=200ms -c jit=off"
# Schedules until the dead rows are removed.
VACUUM_EVERY = 200


@dataclass
class Laboratory:
    """Everything that schedules need, on a database in which the schema lonnymq is installed."""

    dsn: str
    control: Control = field(init=False)
    states: States = field(init=False)
    instrument: Instrument = field(default_factory=Instrument)
    sessions: dict[int, SteppedSession] = field(default_factory=dict)
    _changed: dict[str, str] = field(default_factory=dict)
    _schedules: int = 0

    def __post_init__(self) -> None:
        self.dsn = make_conninfo(self.dsn, options=OPTIONS)
        self.control = psycopg.connect(self.dsn, autocommit=True)
        self.control.prepare_threshold = 0
        self.control.execute(SUPPORT.encode(), prepare=False)
        self.control.execute("do $$ begin execute 'create role ' || interleavings.tenant_role(); end $$")
        self._create_functions(files.functions_and_views())
        self.states = States(self.control)

    def close(self) -> None:
        """Leave an empty queue."""
        for session in self.sessions.values():
            session.close()
        self.states.clear()
        role = self.control.execute("select interleavings.tenant_role()::regrole::text").fetchone()
        assert role is not None
        self.control.execute(f"drop owned by {role[0]}; drop role {role[0]}".encode(), prepare=False)
        self.control.close()

    def begin(self, count: int) -> list[SteppedSession]:
        """Return to the state that was built, and return that many sessions for a schedule."""
        self._schedules += 1
        if self._schedules % VACUUM_EVERY == 0:
            self.control.execute("vacuum", prepare=False)
        self.states.restore()
        for number in range(count):
            if number not in self.sessions:
                self.sessions[number] = SteppedSession(self.dsn, self.control, number)
            hints = f"regexp_replace('{self.states.hints}', '\\d+\\)$', pg_backend_pid() || ')')"
            self.sessions[number].execute(f"unlisten *; select set_config({HINTS}, {hints}, false)")
            self.sessions[number].notifications()
        return [self.sessions[number] for number in range(count)]

    def replace(self, session: SteppedSession) -> None:
        """Forget a session that was killed."""
        del self.sessions[session.number]

    def change(self, changes: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """Replace text in files of functions, given by name. Earlier changes are undone."""
        texts = {name: changed_text(name, replacements) for name, replacements in changes.items()}
        restored = {name: function_file(name).text for name in self._changed}
        self._changed = texts
        self._create_functions(
            [files.File(function_file(name).path, text) for name, text in {**restored, **texts}.items()]
        )

    def _create_functions(self, created: Sequence[files.File]) -> None:
        with self.control.transaction():
            # The queue's schema first, so that its functions use the clock there.
            self.control.execute("set local search_path to lonnymq, pg_catalog, pg_temp")
            for file in (*created, files.read("plans.sql")):
                self.control.execute(self.instrument.rewrite(file).encode(), prepare=False)


def changed_text(name: str, replacements: Sequence[tuple[str, str]]) -> str:
    """Return the text of a function's file with replacements, each of which must apply exactly once."""
    file = function_file(name)
    text = file.text
    for old, new in replacements:
        if text.count(old) != 1:
            raise ValueError(
                f"src/lonnymq/sql/{file.path} must contain once, not {text.count(old)} times: {old}"
            )
        text = text.replace(old, new)
    return text


def function_file(name: str) -> files.File:
    return files.read(f"functions/{name}.sql")
