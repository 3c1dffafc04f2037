"""Turns the files in sql/ into steps that install, migrate, inspect and uninstall a queue, or a script."""

from lonnymq.schema import files, steps
from lonnymq.schema.inspection import SchemaState, SchemaStatus, parse_version_comment
from lonnymq.schema.step import Step, Steps
from lonnymq.schema.steps import require_schema, sql_text

__all__ = [
    "SchemaState",
    "SchemaStatus",
    "Step",
    "Steps",
    "files",
    "parse_version_comment",
    "require_schema",
    "sql_text",
    "steps",
]
