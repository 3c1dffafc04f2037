"""The files under sql/ follow the layout."""

import re
from pathlib import Path

from lonnymq.schema import files
from tools import freeze

SQL = Path(__file__).resolve().parents[2] / "src" / "lonnymq" / "sql"


def test_the_table_of_contents_is_complete() -> None:
    listed = {file.path for file in files.contents()}
    present = {
        path.relative_to(SQL).as_posix()
        for folder in ("tables", "functions", "views")
        for path in (SQL / folder).glob("*.sql")
    }
    assert listed == present | {"plans.sql"}
    assert len(files.contents()) == len(listed)


def test_each_function_and_view_is_in_a_file_of_the_same_name() -> None:
    for file in files.functions_and_views():
        created = [match["name"] for match in files.CREATED.finditer(file.text)]
        assert created == ([] if file.path == "plans.sql" else [Path(file.path).stem])


def test_each_function_says_what_it_locks_and_writes() -> None:
    for file in files.contents():
        if file.path.startswith("functions/"):
            assert re.match(rf"-- {Path(file.path).stem}: ", file.text), file.path
            assert re.search(r"^-- Locks:  \S", file.text, re.MULTILINE), file.path
            assert re.search(r"^-- Writes: \S", file.text, re.MULTILINE), file.path


def test_the_first_migration_matches_the_tables() -> None:
    """Until there is a version 2; then the file never changes again."""
    assert freeze.main(["--check"]) == 0
