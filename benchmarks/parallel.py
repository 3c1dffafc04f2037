"""Runs jobs in several processes that start their work at the same time."""

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
# A job warms up, calls this to wait until all jobs are ready, and then works.
StartBarrier = Callable[[], None]

TIMEOUT_S = 900.0
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["benchmarks.contenders"])


def run(jobs: list[Callable[[StartBarrier], Result]]) -> list[Result]:
    """Run each job in its own process; jobs must be picklable, such as partials of module functions."""
    barrier = context.Barrier(len(jobs))
    results: multiprocessing.Queue[tuple[int, Any, str | None]] = context.Queue()
    processes = [
        context.Process(target=_work, args=(number, job, barrier, results), daemon=True)
        for number, job in enumerate(jobs)
    ]
    # Earlier writes, such as the waiting messages, must not be flushed during the measurement.
    os.sync()
    for process in processes:
        process.start()
    try:
        return _collect_results(results, processes)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _collect_results(
    results: "multiprocessing.Queue[tuple[int, Any, str | None]]", processes: Sequence[BaseProcess]
) -> list[Any]:
    collected: dict[int, Any] = {}
    while len(collected) < len(processes):
        try:
            number, result, failure = results.get(timeout=5.0)
        except queue.Empty:
            dead = [process.exitcode for process in processes if process.exitcode]
            if dead:
                raise RuntimeError(f"a worker process died with exit code {dead[0]}") from None
            continue
        if failure is not None:
            raise RuntimeError(f"a worker process failed:\n{failure}")
        collected[number] = result
    return [collected[number] for number in range(len(processes))]


def _work(
    number: int,
    job: Callable[[StartBarrier], object],
    barrier: Barrier,
    results: "multiprocessing.Queue[tuple[int, Any, str | None]]",
) -> None:
    try:
        results.put((number, job(functools.partial(_wait, barrier)), None))
    except BaseException:  # noqa: BLE001 - the parent must learn of every error
        barrier.abort()
        results.put((number, None, traceback.format_exc()))


def _wait(barrier: Barrier) -> None:
    barrier.wait(TIMEOUT_S)
