"""A client process that dequeues and never reads the reply."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg


class Client(NamedTuple):
    backend_pid: int
    process: "subprocess.Popen[str]"


@contextmanager
def stopped_client(dsn: str, *queries: str) -> Iterator[Client]:
    """Stop a process with SIGSTOP after it has sent the last query, and kill it when the block ends."""
    process = subprocess.Popen(
        [sys.executable, __file__, dsn, *queries], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            backend_pid = int(process.stdout.readline())
            assert process.stdout.readline() == "sent\n"
            process.send_signal(signal.SIGSTOP)
            yield Client(backend_pid, process)
        finally:
            process.kill()


def main(dsn: str, *queries: str) -> None:
    connection = psycopg.connect(dsn, autocommit=True, options="-c search_path=lonnymq")
    for query in queries[:-1]:
        connection.execute(query.encode())
    print(connection.info.backend_pid, flush=True)
    connection.pgconn.send_query(queries[-1].encode())
    connection.pgconn.flush()
    print("sent", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
