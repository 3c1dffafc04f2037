"""The statement by which the rows of a bulk load are staged."""

from typing import Any, cast

from psycopg import sql

from lonnymq.schema import files


def copying(schema: str) -> sql.Composed:
    """Return sql/copy.sql for this queue, its table named in full.

    Found by search_path instead, it would be missing for a role that may not use the schema.
    """
    return sql.SQL(cast("Any", files.read("copy.sql").text)).format(schema=sql.Identifier(schema))
