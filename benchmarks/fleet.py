"""Runs a job in several processes that start at the same moment."""

import functools
import multiprocessing
import os
import queue
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

Result = TypeVar("Result")
# A job warms up, then calls the gate, which opens when everybody is there, then works.
Gate = Callable[[], None]

PATIENCE_S = 900.0
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["benchmarks.contenders"])


def run(jobs: list[Callable[[Gate], Result]]) -> list[Result]:
    """Each job in a process of its own; jobs are picklable, such as partials of a module's functions."""
    barrier = context.Barrier(len(jobs))
    results: multiprocessing.Queue[tuple[int, Any, str | None]] = context.Queue()
    processes = [
        context.Process(target=_work, args=(number, job, barrier, results), daemon=True)
        for number, job in enumerate(jobs)
    ]
    # What was written before, such as the messages that wait, must not be written while the clock runs.
    os.sync()
    for process in processes:
        process.start()
    try:
        return _gathered(results, processes)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _gathered(
    results: "multiprocessing.Queue[tuple[int, Any, str | None]]", processes: Sequence[BaseProcess]
) -> list[Any]:
    gathered: dict[int, Any] = {}
    while len(gathered) < len(processes):
        try:
            number, result, failure = results.get(timeout=5.0)
        except queue.Empty:
            dead = [process.exitcode for process in processes if process.exitcode]
            if dead:
                raise RuntimeError(f"a worker process died with exit code {dead[0]}") from None
            continue
        if failure is not None:
            raise RuntimeError(f"a worker process failed:\n{failure}")
        gathered[number] = result
    return [gathered[number] for number in range(len(processes))]


def _work(
    number: int,
    job: Callable[[Gate], object],
    barrier: Barrier,
    results: "multiprocessing.Queue[tuple[int, Any, str | None]]",
) -> None:
    try:
        results.put((number, job(functools.partial(_wait, barrier)), None))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must hear of it
        barrier.abort()
        results.put((number, None, traceback.format_exc()))


def _wait(barrier: Barrier) -> None:
    barrier.wait(PATIENCE_S)
