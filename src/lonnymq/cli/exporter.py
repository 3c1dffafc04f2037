"""exporter: metrics of a queue for Prometheus."""

import importlib.util
from typing import Annotated

import typer

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.log import LogFormat, start_logging
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.cli.output import print_error
from lonnymq.errors import install_advice


def exporter(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0 is any free one.")
    ] = 9719,
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", "-c", help="Show this channel; may be repeated.", show_default=False),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            "--top", min=0, max=100, help="Show this many channels with the most messages, from a sample."
        ),
    ] = 0,
    due_channels: Annotated[
        int,
        typer.Option(
            "--due-channels", min=1, max=10_000, help="Add up the demand of this many due channels."
        ),
    ] = 1_000,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=0.1, max=60, help="Seconds that a look at the queue may take.")
    ] = 5.0,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="Text for people, or one JSON object per line.")
    ] = LogFormat.TEXT,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Show the queue's metrics to Prometheus, at /metrics, and its demand to autoscalers, at /demand.

    Each scrape looks at the queue, at a cost that does not depend on its size. While that fails, lonnymq_up
    is 0 and all else is absent. The role needs the kind "reader". SIGTERM or Ctrl-C stops it.
    """
    if importlib.util.find_spec("prometheus_client") is None:
        print_error(f"metrics need prometheus_client: {install_advice('prometheus')}")
        raise typer.Exit(CommandExit.USAGE)
    from lonnymq.telemetry.exporter import run_exporter
    from lonnymq.telemetry.monitor import MonitorSettings
    from lonnymq.worker.client_factory import ClientFactory

    settings = MonitorSettings(
        channels=tuple(channel or ()), top=top, due_channels=due_channels, timeout_s=timeout_s
    )
    start_logging("info", log_format)
    run_exporter(ClientFactory(dsn, schema), settings, host, port)
