"""Runs the programs that pages show. Imports little, because many pages have a process of their own."""

from pathlib import Path
from typing import Any

import psycopg

import lonnymq
from tests.examples.pages import ROOT, blocks


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(page: Path, namespace: dict[str, Any], skipped: int = 0) -> None:
    found = blocks(page, "python")[skipped:]
    assert found, f"{name_of(page)} shows no program"
    try:
        for block in found:
            # Blank lines in front, so that a traceback shows the page's own line.
            code = "\n" * (block.line - 1) + block.code
            exec(compile(code, str(page), "exec"), namespace)
    finally:
        close(namespace)


def close(namespace: dict[str, Any]) -> None:
    for value in namespace.values():
        if isinstance(value, lonnymq.Queue | psycopg.Connection):
            value.close()
    for value in namespace.values():
        if isinstance(value, lonnymq.EmbeddedServer):
            value.stop()
