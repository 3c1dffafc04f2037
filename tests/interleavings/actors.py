"""A session of a schedule with its program: carries out the decisions that concern it."""

from tests.interleavings.account import Account
from tests.interleavings.instrument import Point
from tests.interleavings.operations import Call, Program, Signal
from tests.interleavings.sessions import Row, SteppedSession


class Actor:
    """Begins steps, and tells the account what they did. Each call runs in a transaction."""

    def __init__(self, session: SteppedSession, program: Program, account: Account) -> None:
        self.session, self.program, self.account = session, program, account
        self.number = session.number
        self.is_blocked = self.is_killed = self.is_asleep = False
        self.replies: list[str] = []
        self._next: Call | Signal | None = next(program)
        # What the current step does to the transaction: commit or rollback.
        self._ending = ""

    @property
    def is_done(self) -> bool:
        return self.is_killed or (self._next is None and not self.is_busy)

    @property
    def is_busy(self) -> bool:
        """Whether a call is running or a transaction is open."""
        return self.session.is_running or self.session.is_in_transaction

    @property
    def is_at_end(self) -> bool:
        """Whether the next step ends the transaction."""
        is_between_calls = self.session.is_in_transaction and not self.session.is_running
        return is_between_calls and self._next in (None, Signal.COMMIT)

    def go_on(self, point: Point | None) -> str:
        """Begin the next step, and return what it is."""
        if point is not None:
            self.session.go_on()
            return point.label
        if self.is_at_end:
            return self._end("rollback" if self.session.error else "commit")
        assert isinstance(self._next, Call)
        self.account.begin(self.number, self._next)
        sql = self._next.sql
        self.session.send(sql if self.session.is_in_transaction else f"begin; {sql}")
        return f"> {' '.join(sql.split())}"

    def roll_back(self) -> str:
        return self._end("rollback")

    def kill(self, point: Point | None) -> str:
        self.session.kill()
        self.account.roll_back(self.number)
        self.is_killed = True
        return f"killed at {point.label if point else 'the end of its call'}"

    def finish_step(self) -> None:
        """Statements have ended: tell the account and the program."""
        ending, self._ending = self._ending, ""
        if ending == "commit":
            self.account.commit(self.number)
            if self._next is Signal.COMMIT:
                self._advance([])
        elif ending == "rollback":
            self.account.roll_back(self.number)
            self._next = None
        elif self.session.error:
            self.account.report(f"session {self.number}: {self.session.error.splitlines()[0]}")
            self.account.roll_back(self.number)
            self._next = None
        else:
            self.replies += [f"session {self.number}: {_short(row)}" for row in self.session.rows]
            self.account.reply(self.number, self.session.rows)
            self._advance(self.session.rows)

    def _end(self, how: str) -> str:
        self._ending = how
        self.session.send(how)
        return how

    def _advance(self, rows: list[Row]) -> None:
        try:
            self._next = self.program.send(rows)
            if self._next is Signal.SLEEP:
                self.is_asleep = True
                self._next = self.program.send([])
        except StopIteration:
            self._next = None


def _short(row: Row) -> str:
    """Return a row without the values that differ from one replay to the next."""
    random = ("token", "claim", "oldest", "newest")
    return " ".join(value for name, value in row.items() if value is not None and name not in random)
