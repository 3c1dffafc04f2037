"""cron: messages that are created again and again."""

import typer

app = typer.Typer(help="Crons: messages that are created again and again.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List crons."""
