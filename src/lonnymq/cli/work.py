"""work: run a worker."""

import logging
import sys
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from lonnymq import Queue
from lonnymq.cli import reload as reloading
from lonnymq.cli.log import LogFormat, start_logging
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.cli.target import found
from lonnymq.tasks import App
from lonnymq.worker import Worker, WorkerSettings, supervise


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Job:
    """What a process of the worker is to do; crosses process boundaries."""

    target: str
    # It may hold a password.
    dsn: str = field(repr=False)
    schema: str
    settings: dict[str, Any]
    log_level: str
    log_format: LogFormat


def work(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:ATTRIBUTE", help="An App, a Worker, or a function of a message: shop.tasks:app."
        ),
    ],
    processes: Annotated[
        int | None,
        typer.Option("--processes", "-p", min=1, help="Processes, for work that needs the CPU (default 1)."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", min=1, help="Messages at a time, per process (default 10)."),
    ] = None,
    prefetch: Annotated[
        int | None,
        typer.Option("--prefetch", min=0, help="Messages leased ahead of free slots; 0: none, ever."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            min=1,
            help="Bytes of large contents in memory at a time, per process (default 128 MiB).",
        ),
    ] = None,
    lease_s: Annotated[
        float | None,
        typer.Option("--lease-s", min=0.1, help="Seconds a lease lasts without a heartbeat (default 30)."),
    ] = None,
    shutdown_s: Annotated[
        float | None,
        typer.Option(
            "--shutdown-s",
            min=0,
            help="Seconds running handlers may go on after the first signal (default 20).",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The worker's name, in leases and logs.")] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Start again when a .py file changes; for development.")
    ] = False,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", metavar="LEVEL", help="debug shows completed messages too.")
    ] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="Lines for people, or JSON.")
    ] = LogFormat.TEXT,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Work messages until SIGTERM or Ctrl-C; a second one does not wait for what runs.

    An App or a Worker has its own queue and settings. Options given here override its settings; the defaults
    shown hold unless it says otherwise. A plain function gets the queue of --dsn and --schema. A server that
    is away is waited for.

    Exit codes: 0 finished, 1 failed, 2 wrong usage or an app that cannot be imported, 3 the queue cannot be
    used, 4 running handlers were interrupted.

    lonnymq work shop.tasks:app --processes 4
    """
    if reload:
        raise typer.Exit(reloading.run(sys.argv[1:]))
    reloading.end_with_parent()
    given = {
        "processes": processes,
        "concurrency": concurrency,
        "prefetch": prefetch,
        "max_bytes": max_bytes,
        "lease_s": lease_s,
        "shutdown_s": shutdown_s,
        "name": name,
    }
    settings = {key: value for key, value in given.items() if value is not None}
    if isinstance(found(target), App | Worker):
        refuse_to_override(context, target)
    job = Job(target, dsn, schema, settings, log_level.value, log_format)
    worker = worker_for(job)
    raise typer.Exit(_run(worker, job))


def refuse_to_override(context: typer.Context, target: str) -> None:
    """An App goes by the queue that its program gave it; one given here would be ignored."""
    for name in ("dsn", "schema"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--{name} cannot be given with {target}, which has a queue of its own; set it there, for"
                ' example with lonnymq.Queue(os.environ["LONNYMQ_DSN"])'
            )


def worker_for(job: Job) -> Worker:
    """Make the worker, in this process or in a child."""
    start_logging(job.log_level, job.log_format)
    named = found(job.target)
    if isinstance(named, App):
        return named.worker(**job.settings)
    if isinstance(named, Worker):
        settings = replace(named.settings, **job.settings)
        return Worker(named.clients, named.handler, settings=settings, middleware=named.middleware)
    return Worker(Queue(job.dsn, schema=job.schema), named, settings=WorkerSettings(**job.settings))


def _run(worker: Worker, job: Job) -> int:
    schema = worker.clients.schema
    logging.getLogger("lonnymq").info("starting on queue %r; Ctrl-C finishes what runs", schema)
    settings = worker.settings
    if settings.processes == 1:
        return worker.run()
    alone = replace(job, settings={**job.settings, "processes": 1})
    return supervise(partial(worker_for, alone), settings.processes, settings.shutdown_s)
