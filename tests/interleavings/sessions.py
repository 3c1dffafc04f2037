"""A connection whose calls stop at yield points until the controller lets them go on."""

import select
import time
from typing import Any

import psycopg
from psycopg import pq
from psycopg.pq import DiagnosticField

Control = psycopg.Connection[Any]
Row = dict[str, str | None]
NEXT_STEP = "select coalesce(pg_sequence_last_value('interleavings.steps_{}'), 0) + 1"
# Takes the lock of the next step before it releases that of this one.
ADVANCE = "select pg_advisory_lock(%s, %s), pg_advisory_unlock(%s, %s)"
ENDED = "select not exists (select from pg_stat_activity where pid = %s)"


class SteppedSession:
    """One of the sessions of a schedule. `control` is the controller's connection, which holds the locks."""

    def __init__(self, dsn: str, control: Control, number: int) -> None:
        self.control, self.number = control, number
        self.pg = pq.PGconn.connect(dsn.encode())
        if self.pg.status != pq.ConnStatus.OK:
            raise OSError(self.pg.error_message.decode())
        self.pg.notice_handler = self._noticed
        self.pid = self.pg.backend_pid
        self._steps(True)
        # The step whose lock the controller holds: the session stops there.
        self._step: int = _value(control, NEXT_STEP.format(number))
        control.execute("select pg_advisory_lock(%s::integer, %s::integer)", [number, self._step])
        # The yield point at which it has stopped; None while it runs, and between two calls.
        self.point: int | None = None
        self.is_running = False
        self.rows: list[Row] = []
        self.error: str | None = None

    @property
    def is_in_transaction(self) -> bool:
        return self.pg.transaction_status != pq.TransactionStatus.IDLE

    def execute(self, text: str) -> None:
        """Run statements without stopping at yield points."""
        self._steps(False)
        _run(self.pg, text)
        self._steps(True)

    def send(self, text: str) -> None:
        """Begin to run statements. Then wait with `has_stopped`."""
        self.is_running, self.point, self.rows, self.error = True, None, [], None
        self.pg.send_query(text.encode())

    def go_on(self) -> None:
        """Leave the yield point at which the session has stopped."""
        self.point = None
        # Without psycopg's cursors, because this is most of what the controller does.
        _run(self.control.pgconn, ADVANCE % (self.number, self._step + 1, self.number, self._step))
        self._step += 1

    def has_stopped(self, within_s: float) -> bool:
        """Wait until it is at a yield point or its statements have ended, and return whether it is."""
        until = time.monotonic() + within_s
        while True:
            self._read()
            if self.point is not None or not self.is_running:
                return True
            left_s = until - time.monotonic()
            if left_s <= 0 or not select.select([self.pg.socket], [], [], left_s)[0]:
                return False
            self.pg.consume_input()

    def blockers(self) -> set[int]:
        """Return the processes for which the session waits."""
        return set(_value(self.control, "select pg_blocking_pids(%s)", self.pid))

    def notifications(self) -> int:
        """Return how many notifications have arrived."""
        _run(self.pg, "select")
        count = 0
        while self.pg.notifies() is not None:
            count += 1
        return count

    def kill(self) -> None:
        """Terminate the server's process, and wait until its transaction is rolled back."""
        self.control.execute("select pg_terminate_backend(%s)", [self.pid])
        while not _value(self.control, ENDED, self.pid):
            time.sleep(0.0005)
        self.close()

    def close(self) -> None:
        self.pg.finish()
        self.is_running, self.point = False, None
        self.control.execute("select pg_advisory_unlock(%s::integer, %s::integer)", [self.number, self._step])

    def _steps(self, is_on: bool) -> None:
        _run(self.pg, f"set interleavings.session = '{self.number if is_on else ''}'")

    def _noticed(self, result: pq.abc.PGresult) -> None:
        words = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode().split()
        if words[:1] == ["yield"]:
            self.point = int(words[1])

    def _read(self) -> None:
        while self.is_running and not self.pg.is_busy():
            result = self.pg.get_result()
            if result is None:
                self.is_running = False
            elif result.status == pq.ExecStatus.FATAL_ERROR:
                self.error = result.error_message.decode().strip()
            else:
                self.rows += _rows(result)


def _rows(result: pq.abc.PGresult) -> list[Row]:
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    values = (
        [result.get_value(row, column) for column in range(len(names))] for row in range(result.ntuples)
    )
    return [
        dict(zip(names, [v.decode() if v is not None else None for v in one], strict=True)) for one in values
    ]


def _run(connection: pq.abc.PGconn, text: str) -> None:
    result = connection.exec_(text.encode())
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise RuntimeError(f"{text}: {result.error_message.decode()}")


def _value(control: Control, query: str, *params: Any) -> Any:
    row = control.execute(query.encode(), params).fetchone()
    assert row is not None
    return row[0]
