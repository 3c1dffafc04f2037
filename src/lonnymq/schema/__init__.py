"""Reads sql/, and makes of it the steps of installing, migrating, checking and uninstalling, or a script."""

from lonnymq.schema import examine, files, steps
from lonnymq.schema.found import SchemaState, SchemaStatus, read_mark
from lonnymq.schema.step import Step, Steps
from lonnymq.schema.steps import require_schema, sql_text

__all__ = [
    "SchemaState",
    "SchemaStatus",
    "Step",
    "Steps",
    "examine",
    "files",
    "read_mark",
    "require_schema",
    "sql_text",
    "steps",
]
