"""Migrates and is cut off: `python -m tests.migration.cut_off RELEASE DSN`, with numbers on stdin.

For each number, a child process migrates and stops itself before that step. The answer is "stopped", and the
next line on stdin lets it be killed; or "done" if the migration has fewer steps.
"""

import os
import signal
import sys


def main(release: str, dsn: str) -> int:
    sys.path.insert(0, release)
    # Not again in each child.
    import lonnymq  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            migrate(dsn, stop_at=int(line))
            os._exit(0)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print("stopped", flush=True)
            sys.stdin.readline()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        else:
            print("failed" if status else "done", flush=True)
    return 0


def migrate(dsn: str, stop_at: int) -> None:
    import psycopg

    from lonnymq.schema import PhaseKind, Steps, phases

    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        if count == stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)

    def run(steps: Steps[object]) -> object:
        rows = None
        with psycopg.connect(dsn) as connection:
            while True:
                tick()
                try:
                    step = next(steps) if rows is None else steps.send(rows)
                except StopIteration as end:
                    result = end.value
                    break
                cursor = connection.execute(step.text.encode(), step.parameters)
                rows = cursor.fetchall() if cursor.description else []
            # Once more: when everything has been sent but the commit.
            tick()
        return result

    plan = run(phases.plan("lonnymq"))
    assert isinstance(plan, tuple)
    for phase in plan:
        if phase.kind is PhaseKind.INDEX:
            statements = run(phases.prepare_index("lonnymq", phase))
            assert isinstance(statements, tuple)
            with psycopg.connect(dsn, autocommit=True) as connection:
                for text in statements:
                    tick()
                    connection.execute(text.encode())
        run(phases.run("lonnymq", phase))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
