"""Migrates and is killed: `python -m tests.migration.cut_off RELEASE DSN`, with numbers on stdin.

For each number, a child process migrates and sends itself SIGKILL before that step; the answer is "killed",
or "done" if the migration has fewer steps.
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
            migrate(dsn, kill_at=int(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        answers = {-signal.SIGKILL: "killed", 0: "done"}
        print(answers.get(os.waitstatus_to_exitcode(status), "failed"), flush=True)
    return 0


def migrate(dsn: str, kill_at: int) -> None:
    import psycopg

    from lonnymq.schema import PhaseKind, Steps, phases

    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

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
