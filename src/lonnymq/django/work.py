"""Creates the worker of `manage.py lonnymq_work`, in its process or in child processes."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from importlib import import_module
from typing import Any

import django
from django.apps import apps
from django.core.management.base import CommandError

from lonnymq.errors import InvalidArgument
from lonnymq.tasks import App
from lonnymq.worker import Handler, Worker, WorkerSettings, supervise
from lonnymq.worker.health import Watch

LOG_LEVELS = {0: logging.ERROR, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


def run_worker(
    target: str | None, settings: Mapping[str, Any], verbosity: int, watch: Watch | None = None
) -> int:
    """Run until SIGTERM or Ctrl-C, and return the exit code."""
    worker = create_worker(target, settings, verbosity)
    processes = worker.settings.processes
    if processes == 1:
        return worker.run(watch)
    create = partial(create_worker, target, {**settings, "processes": 1}, verbosity)
    return supervise(create, processes, worker.settings.shutdown_s, watch)


def create_worker(target: str | None, settings: Mapping[str, Any], verbosity: int) -> Worker:
    """Create the worker for an App, a Worker or a handler; without a target, for django.tasks."""
    if not apps.ready:
        django.setup()
    _start_logging(verbosity)
    # Both need the settings.
    from lonnymq.django.attempts import TasksOnly, with_connections
    from lonnymq.django.configuration import get_queue

    found = TasksOnly() if target is None else _load(target)
    try:
        if isinstance(found, Worker):
            chosen = replace(found.settings, **settings)
            handler = with_connections(found.handler)
            return Worker(found.clients, handler, settings=chosen, middleware=found.middleware)
        queue = found.queue if isinstance(found, App) else get_queue()
        return Worker(queue, with_connections(found), settings=WorkerSettings(**settings))
    except InvalidArgument as error:
        raise CommandError(str(error)) from error


def _load(target: str) -> Any:
    """Import `module:attribute`, or the only App of `module`."""
    name, _, attribute = target.partition(":")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise CommandError(f"there is no module {name!r}") from error
    if not attribute:
        found = {id(value): value for value in vars(module).values() if isinstance(value, App)}
        if len(found) != 1:
            raise CommandError(f"{name} has {len(found)} apps: name one, as in {name}:app")
        return next(iter(found.values()))
    try:
        value = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise CommandError(f"module {name!r} has no attribute {attribute!r}") from error
    if not isinstance(value, App | Worker | Handler) and not callable(value):
        raise CommandError(f"{target} must be an App, a Worker, a Handler or a function that takes a message")
    return value


def _start_logging(verbosity: int) -> None:
    """Log to stderr, unless the project's LOGGING says where to."""
    logger = logging.getLogger("lonnymq")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    formatter = logging.Formatter("%(asctime)s %(levelname)-7s [%(process)d] %(message)s")
    # UTC, as in the log of `lonnymq work`; the local time is that of the project's TIME_ZONE.
    formatter.converter, formatter.default_msec_format = time.gmtime, "%s.%03dZ"
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.setLevel(LOG_LEVELS[verbosity])
