"""health: ask a worker whether it is alive, for probes that run a command."""

import http.client
from typing import Annotated

import typer

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import Json
from lonnymq.cli.output import print_json, print_text
from lonnymq.formatting import one_line

MAX_BYTES = 10_000


def health(
    port: Annotated[
        int,
        typer.Option(
            "--port",
            envvar="LONNYMQ_HEALTH_PORT",
            min=1,
            max=65_535,
            help="The --health-port of the worker.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", envvar="LONNYMQ_HEALTH_HOST", help="The worker's --health-host.")
    ] = "127.0.0.1",
    is_ready: Annotated[
        bool, typer.Option("--ready", help="Ask whether it is ready, not only alive.")
    ] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=0.1, max=60, help="How long to wait for the answer.")
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Ask a worker with a --health-port whether it is alive, or ready. The exit code is 1 if it is not.

    lonnymq health --port 9720
    """
    # The address with which a server listens on all interfaces is not one to connect to.
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    status, answer = _ask(address, port, "/readyz" if is_ready else "/livez", timeout_s)
    if as_json:
        print_json({"is_healthy": status == 200, "answer": answer})
    else:
        print_text(answer)
    if status != 200:
        raise typer.Exit(CommandExit.NO)


def _ask(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    """Return the status and the first line of the answer; status 0 if there is none."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read(MAX_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"no answer from {host}:{port}: {error}"
    finally:
        connection.close()
    return answer.status, one_line(text, 300)
