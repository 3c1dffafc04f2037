"""Reads sql/ and brings it into a database: install, migrate, check, uninstall, or print the script."""

from lonnymq.schema.run import check, install, migrate, uninstall
from lonnymq.schema.steps import SchemaState, SchemaStatus, sql_text

__all__ = ["SchemaState", "SchemaStatus", "check", "install", "migrate", "sql_text", "uninstall"]
