"""Turns the files in sql/ into steps that install, migrate, inspect and uninstall a queue, or a script."""

from lonnymq.schema import changes, files, phases, steps
from lonnymq.schema.inspection import SchemaState, SchemaStatus, parse_version_comment
from lonnymq.schema.phases import LockedTable, MigrationPhase, PhaseKind
from lonnymq.schema.requirements import refuse_newer, require_schema
from lonnymq.schema.step import Step, Steps
from lonnymq.schema.steps import sql_text

__all__ = [
    "LockedTable",
    "MigrationPhase",
    "PhaseKind",
    "SchemaState",
    "SchemaStatus",
    "Step",
    "Steps",
    "changes",
    "files",
    "parse_version_comment",
    "phases",
    "refuse_newer",
    "require_schema",
    "sql_text",
    "steps",
]
