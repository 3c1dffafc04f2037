"""lonnymq_work: run a worker with the settings of the project."""

import os
import sys
from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.autoreload import get_child_arguments

from lonnymq.django.work import run_worker
from lonnymq.errors import install_advice
from lonnymq.telemetry.health_server import serve_health

# Set in the process that --reload restarts.
RELOADED = "LONNYMQ_RELOADED"
SETTINGS = ("processes", "concurrency", "prefetch", "max_bytes", "lease_s", "shutdown_s", "name")


class Command(BaseCommand):
    """The options are those of `lonnymq work`."""

    help = (
        "Run a worker until SIGTERM or Ctrl-C; a second signal does not wait for running handlers."
        " Exit codes: 0 finished, 1 failed, 3 the queue cannot be used, 4 running handlers were interrupted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "target",
            nargs="?",
            metavar="MODULE[:ATTRIBUTE]",
            help="An App, a Worker, or a function that takes a message; default: run django.tasks only.",
        )
        parser.add_argument("--processes", "-p", type=int, help="Number of processes (default 1).")
        parser.add_argument(
            "--concurrency", "-c", type=int, help="Messages handled at a time per process (default 10)."
        )
        parser.add_argument("--prefetch", type=int, help="Messages leased ahead of free slots; 0 for none.")
        parser.add_argument("--max-bytes", type=int, help="Bytes of large contents in memory per process.")
        parser.add_argument(
            "--lease-s", type=float, help="Seconds until a lease expires without a heartbeat."
        )
        parser.add_argument("--shutdown-s", type=float, help="Seconds for running handlers after the signal.")
        parser.add_argument("--name", help="The worker's name in leases and logs.")
        parser.add_argument(
            "--health-port", type=int, help="Answer probes at /livez and /readyz; needs no extra."
        )
        parser.add_argument("--health-host", default="127.0.0.1", help="Address to listen on for probes.")
        parser.add_argument(
            "--reload", action="store_true", help="Restart when a .py file changes; for development."
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        if options["reload"]:
            sys.exit(_reloading().run([one for one in get_child_arguments() if one != "--reload"]))
        if RELOADED in os.environ:
            _reloading().end_with_parent()
        settings = {name: options[name] for name in SETTINGS if options[name] is not None}
        watch = None
        if options["health_port"] is not None:
            watch = partial(serve_health, host=options["health_host"], port=options["health_port"])
        sys.exit(run_worker(options["target"], settings, options["verbosity"], watch))


def _reloading() -> Any:
    try:
        from lonnymq.cli import reload
    except ImportError as error:
        raise CommandError(f"--reload needs the command line: {install_advice('cli')}") from error
    return reload
