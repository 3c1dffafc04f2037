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
from lonnymq.cli.target import load_target
from lonnymq.tasks import App
from lonnymq.worker import Worker, WorkerSettings, supervise
from lonnymq.worker.health import Watch


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker process needs to start; it is pickled for child processes."""

    target: str
    # Not in the repr: it may hold a password.
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
            metavar="MODULE:ATTRIBUTE",
            help="An App, a Worker, or a function that takes a message: shop.tasks:app.",
        ),
    ],
    processes: Annotated[
        int | None,
        typer.Option("--processes", "-p", min=1, help="Number of processes, for CPU-bound work (default 1)."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", "-c", min=1, help="Messages handled at a time per process (default 10)."
        ),
    ] = None,
    prefetch: Annotated[
        int | None,
        typer.Option(
            "--prefetch", min=0, help="Messages leased ahead of free slots; 0 turns prefetching off."
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            min=1,
            help="Bytes of large contents held in memory per process (default 128 MiB).",
        ),
    ] = None,
    lease_s: Annotated[
        float | None,
        typer.Option(
            "--lease-s", min=0.1, help="Seconds until a lease expires without a heartbeat (default 30)."
        ),
    ] = None,
    shutdown_s: Annotated[
        float | None,
        typer.Option(
            "--shutdown-s",
            min=0,
            help="Seconds that running handlers may take after the first signal (default 20).",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The worker's name in leases and logs.")] = None,
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port",
            envvar="LONNYMQ_HEALTH_PORT",
            min=0,
            max=65_535,
            help="Answer probes at /livez and /readyz, and show metrics at /metrics; 0 is any free port.",
            show_default=False,
        ),
    ] = None,
    health_host: Annotated[
        str,
        typer.Option(
            "--health-host", envvar="LONNYMQ_HEALTH_HOST", help="The address to listen on for probes."
        ),
    ] = "127.0.0.1",
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when a .py file changes; for development.")
    ] = False,
    log_level: Annotated[
        LogLevel,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="debug, info, warning or error; debug logs completed messages too.",
        ),
    ] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="Text for people, or one JSON object per line.")
    ] = LogFormat.TEXT,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C; a second signal does not wait for running handlers.

    An App or a Worker brings its own queue and settings. Options given here override its settings; the
    defaults shown apply unless it sets another value. A plain function uses the queue of --dsn and --schema.
    While the server is unreachable, the worker waits for it.

    Exit codes: 0 finished, 1 failed, 2 wrong usage or an app that cannot be imported, 3 the queue cannot be
    used, 4 running handlers were interrupted.

    lonnymq work shop.tasks:app --processes 4
    """
    if reload:
        arguments = [one for one in sys.argv[1:] if one != "--reload"]
        raise typer.Exit(reloading.run([sys.executable, "-m", "lonnymq", *arguments]))
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
    if isinstance(load_target(target), App | Worker):
        refuse_queue_options(context, target)
    spec = WorkerSpec(target, dsn, schema, settings, log_level.value, log_format)
    worker = create_worker(spec)
    watch = None
    if health_port is not None:
        from lonnymq.telemetry.health_server import serve_health

        watch = partial(serve_health, host=health_host, port=health_port)
    raise typer.Exit(_run(worker, spec, watch))


def refuse_queue_options(context: typer.Context, target: str) -> None:
    """Refuse --dsn and --schema, which an App or Worker with its own queue would ignore."""
    for name in ("dsn", "schema"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--{name} cannot be used with {target}, which has a queue of its own; set it in your"
                ' program, for example with lonnymq.Queue(os.environ["LONNYMQ_DSN"])'
            )


def create_worker(spec: WorkerSpec) -> Worker:
    """Create the worker, in this process or in a child process."""
    start_logging(spec.log_level, spec.log_format)
    target = load_target(spec.target)
    if isinstance(target, App):
        return target.worker(**spec.settings)
    if isinstance(target, Worker):
        settings = replace(target.settings, **spec.settings)
        return Worker(target.clients, target.handler, settings=settings, middleware=target.middleware)
    return Worker(Queue(spec.dsn, schema=spec.schema), target, settings=WorkerSettings(**spec.settings))


def _run(worker: Worker, spec: WorkerSpec, watch: Watch | None) -> int:
    schema = worker.clients.schema
    logging.getLogger("lonnymq").info("starting on queue %r; Ctrl-C stops after running handlers", schema)
    settings = worker.settings
    if settings.processes == 1:
        return worker.run(watch)
    single = replace(spec, settings={**spec.settings, "processes": 1})
    return supervise(partial(create_worker, single), settings.processes, settings.shutdown_s, watch)
