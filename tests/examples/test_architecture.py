"""What ARCHITECTURE.md and the page about changes say is true of the tree and of the installed schema."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Connect
from tests.examples.pages import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "lonnymq"
FILE = re.compile(r"`([\w./]+\.(?:py|sql|md|css)|[\w/]+/)`")
# `message_create`, `turn.next_at`, `queue_check(true)`; a word without an underscore may be anything.
IDENTIFIER = re.compile(r"`(?:\w+\.)?([a-z]\w*_\w+)(?:\([^`]*\))?`")


class Installed(NamedTuple):
    tables: set[str]
    views: set[str]
    functions: set[str]
    columns: set[str]


@pytest.fixture
def installed(connect: Connect) -> Installed:
    """Return the names in the queue's schema, without the partitions of history."""
    connection = connect()

    def names(query: str) -> set[str]:
        return {name for (name,) in connection.execute(query.encode())}

    relations = "from pg_class where relnamespace = 'lonnymq'::regnamespace and not relispartition"
    return Installed(
        tables=names(f"select relname::text {relations} and relkind in ('r', 'p')"),
        views=names(f"select relname::text {relations} and relkind = 'v'"),
        functions=names("select proname::text from pg_proc where pronamespace = 'lonnymq'::regnamespace"),
        columns=names(
            "select attname::text from pg_attribute a join pg_class c on c.oid = a.attrelid"
            " where c.relnamespace = 'lonnymq'::regnamespace"
        ),
    )


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of tables."""
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def python_names() -> set[str]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)}


def exists(name: str) -> bool:
    """Whether there is such a file or folder; a sentence about a folder may name a file without it."""
    if (ROOT / name).exists() or (PACKAGE / name).exists():
        return True
    return any(str(path).endswith(f"/{name.rstrip('/')}") for path in PACKAGE.rglob(Path(name).name))


def test_it_counts_the_tables_functions_and_views(installed: Installed) -> None:
    counts = {
        kind: [int(number) for number in re.findall(rf"\b(\d+) {kind}\b", page())]
        for kind in ("tables", "functions", "views")
    }
    assert counts == {
        "tables": [len(installed.tables)],
        # About: rounded to tens, so that not every new function changes the page.
        "functions": [round(len(installed.functions), -1)],
        "views": [len(installed.views)],
    }


def test_it_says_of_every_table_who_writes_it(installed: Installed) -> None:
    section = page().partition("\n## Who writes what\n")[2].partition("\n## ")[0]
    named = [name for row in table_rows(section) for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(installed.tables)


def test_every_file_that_it_names_exists() -> None:
    named = FILE.findall(page())
    assert len(named) > 30
    assert [name for name in named if not exists(name)] == []


def test_every_sql_function_in_its_tables_exists(installed: Installed) -> None:
    cells = [cell for row in table_rows(page()) for cell in row]
    named = {name for cell in cells for name in IDENTIFIER.findall(cell)}
    assert len(named & installed.functions) > 20
    known = installed.tables | installed.views | installed.functions | installed.columns | python_names()
    assert named - known == set()


def test_what_the_page_about_changes_names_exists(installed: Installed) -> None:
    text = (ROOT / "docs" / "howto" / "change-it.md").read_text(encoding="utf-8")
    files = set(re.findall(r"\b(?:src|tests|docs)/[\w/-]+(?:\.\w+)?", text)) | {
        f"src/lonnymq/{name}" for name in re.findall(r"`((?:sql|cli)/[\w/]+\.\w+)`", text)
    }
    # The new files of its examples.
    examples = {name for name in files if re.search(r"/message_snooze|/oldest|/0002_", name)}
    assert len(files) > 30
    assert [name for name in files - examples if not (ROOT / name).exists()] == []
    # Parameters and columns that are new or are said to be Python's.
    others = {"min_defer_ms", "p_ids", "p_tokens", "breaks_below"}
    known = installed.tables | installed.functions | installed.columns | others
    assert set(IDENTIFIER.findall(text)) - known == set()
