"""serve: the dashboard."""

import signal
import socket
from pathlib import Path
from typing import Annotated

import typer

from lonnymq.cli.connect import open_queue
from lonnymq.cli.log import LogFormat, start_logging
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.cli.output import print_text
from lonnymq.errors import install_advice

SECURITY = "Who may use it"


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="The address to listen on. Any other than loopback needs a password or a proxy."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 8090,
    environment: Annotated[
        str,
        typer.Option(
            "--environment", help="A name shown on each page, such as production.", show_default=False
        ),
    ] = "",
    colour: Annotated[
        str,
        typer.Option(
            "--colour", help="The colour of the header: grey, blue, green, yellow, orange, red or purple."
        ),
    ] = "grey",
    root_path: Annotated[
        str,
        typer.Option(
            "--root-path", help="The path under which a proxy shows it, such as /queue.", show_default=False
        ),
    ] = "",
    reader_dsn: Annotated[
        str,
        typer.Option(
            "--reader-dsn",
            envvar="LONNYMQ_READER_DSN",
            help="The database as a role that was granted `reader`: used for all but actions and contents.",
            show_default=False,
        ),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            help="A host name under which browsers may open it, besides localhost; may be repeated.",
            show_default=False,
            rich_help_panel=SECURITY,
        ),
    ] = None,
    users_file: Annotated[
        Path | None,
        typer.Option(
            "--users-file",
            help="Users and passwords, one per line: name:operator:password or name:reader:password.",
            show_default=False,
            rich_help_panel=SECURITY,
        ),
    ] = None,
    proxy_header: Annotated[
        str,
        typer.Option(
            "--proxy-header",
            help="The header in which a proxy states the user's name, such as X-Forwarded-User.",
            show_default=False,
            rich_help_panel=SECURITY,
        ),
    ] = "",
    proxy_network: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-network",
            help="A network of proxies, such as 10.0.0.0/8, from which that header and X-Forwarded-Proto"
            " are trusted; may be repeated.",
            show_default=False,
            rich_help_panel=SECURITY,
        ),
    ] = None,
    proxy_operator: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-operator",
            help="A user of the proxy who may act; the others may only look. May be repeated.",
            show_default=False,
            rich_help_panel=SECURITY,
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nobody may act.", rich_help_panel=SECURITY)
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Serve the dashboard: the queue in a browser, at an address of this machine.

    Without passwords and without a proxy it listens on loopback only, and everyone who can open the page is
    an operator. LONNYMQ_DASHBOARD_PASSWORD is the password of a user named operator, and
    LONNYMQ_DASHBOARD_READER_PASSWORD that of one named reader; a file can name more. A proxy that has
    authenticated its users states their names in a header.

    lonnymq serve --environment production --colour red
    """
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise typer.BadParameter(f"the dashboard needs {error.name}: {install_advice('dashboard')}") from None
    from lonnymq.cli.serve_access import choose_access
    from lonnymq.cli.serve_connections import make_config
    from lonnymq.dashboard import DashboardSettings, asgi_app
    from lonnymq.dashboard.settings import LOCAL_HOSTS

    access = choose_access(
        host, users_file, proxy_header, proxy_network or (), proxy_operator or (), is_read_only=read_only
    )
    hosts = (*LOCAL_HOSTS, *(allow_host or ()))
    settings = DashboardSettings(
        environment=environment, colour=colour, hosts=hosts, proxies=tuple(proxy_network or ())
    )
    with open_queue(dsn, schema) as queue:
        queue.schema_status()
    dashboard = asgi_app(dsn, access=access, reader=reader_dsn or None, schema=schema, settings=settings)
    start_logging("info", LogFormat.TEXT)
    config = make_config(dashboard, root_path.rstrip("/"))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}{root_path.rstrip('/')}/"
        # uvicorn sends itself the signal again after it has stopped.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        print_text(f"The dashboard is at {address} ; Ctrl-C stops it")
        uvicorn.Server(config).run(sockets=[listening])
