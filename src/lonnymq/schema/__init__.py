"""Reads sql/ and brings it into a database: install, migrate, check, uninstall, or print the script."""

from lonnymq.schema import examine, files, steps
from lonnymq.schema.found import SchemaState, SchemaStatus, read_mark
from lonnymq.schema.run import check, install, migrate, uninstall
from lonnymq.schema.step import Step, Steps
from lonnymq.schema.steps import require_schema, sql_text

__all__ = [
    "SchemaState",
    "SchemaStatus",
    "Step",
    "Steps",
    "check",
    "examine",
    "files",
    "install",
    "migrate",
    "read_mark",
    "require_schema",
    "sql_text",
    "steps",
    "uninstall",
]
