"""sql: print what install or migrate would run, to apply it with another tool."""

from enum import StrEnum
from typing import Annotated

import typer

from lonnymq import SchemaMissing
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Schema
from lonnymq.schema import sql_text


class Script(StrEnum):
    INSTALL = "install"
    MIGRATE = "migrate"


def sql(
    script: Annotated[Script, typer.Argument(help="Which script to print.")] = Script.INSTALL,
    from_version: Annotated[
        int | None,
        typer.Option(
            "--from-version",
            help="For migrate: the version to start from; default: the database's.",
            show_default=False,
        ),
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Print the SQL that install or migrate would run, as transactions; that of migrate can be run again.

    The script of install needs no database: lonnymq sql | psql mydb
    """
    if script is Script.INSTALL:
        if from_version is not None:
            raise typer.BadParameter("--from-version works only with migrate")
    elif from_version is None:
        with open_queue(dsn, schema) as queue:
            from_version = queue.schema_status().version
        if from_version == 0:
            raise SchemaMissing(f"there is no queue in schema {schema!r} to migrate: run `lonnymq install`")
    typer.echo(sql_text(schema, from_version), nl=False)
