"""The files under sql/ follow the layout."""

import re
from pathlib import Path

import pytest

from lonnymq.schema import files
from tools import freeze, wrap

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


def test_no_line_of_sql_is_longer_than_120_columns() -> None:
    for path in SQL.rglob("*.sql"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert len(line) <= 120, f"{path.relative_to(SQL)}:{number}"


@pytest.mark.parametrize("page", wrap.pages(), ids=lambda page: page.relative_to(wrap.ROOT).as_posix())
def test_no_line_of_a_page_is_wider_than_120_columns(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not list(wrap.too_wide(lines)), "run: make format"


def test_wrapping_changes_only_what_is_too_wide() -> None:
    long = " ".join(["word"] * 30)
    assert wrap.wrap(["short", "", long]) == ["short", "", long[:119], "word " * 5 + "word"]
    assert wrap.wrap([f"- {long}", "  end", "- next"]) == [
        f"- {long[:114]}",
        "  " + "word " * 6 + "word end",
        "- next",
    ]
    kept = ["```sh", long, "```", f"    {long}", f"| {long} |", f"# {long}", "x" * 200]
    assert wrap.wrap(kept) == kept
    # What would mean something else at the beginning of a line stays behind a word.
    assert wrap.wrap([f"{long[:119]} - b"]) == [long[:114], "word - b"]


def test_functions_mean_the_same_whatever_standard_conforming_strings_is() -> None:
    for file in files.contents():
        assert "\\" not in re.sub(r"\be'[^']*'", "", file.text), file.path


def test_the_first_migration_creates_the_tables() -> None:
    """Until there is a version 2; tests/migration compares their result then."""
    assert freeze.main(["--check"]) == 0
    if files.latest_version() == 1:
        texts = [file.text for file in files.tables()]
        assert all(text in files.migrations()[0].text for text in texts)


@pytest.fixture
def unreleased(tmp_path: Path) -> Path:
    target = tmp_path / "0001_create_queue.sql"
    target.write_text("-- Not released.\n\\ir ../tables\n", encoding="utf-8")
    return target


def test_version_1_is_frozen_once(unreleased: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert freeze.main(["--check"], unreleased) == 0
    assert files.is_unreleased(unreleased.read_text())
    assert freeze.main([], unreleased) == 0
    frozen = unreleased.read_text()
    assert all(file.text in frozen for file in files.tables())
    assert not files.is_unreleased(frozen)
    assert freeze.main([], unreleased) == 1
    assert "never changes again: write the next migration" in capsys.readouterr().err
    assert unreleased.read_text() == frozen


def test_a_table_that_changes_after_the_release_needs_a_migration(
    unreleased: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    freeze.main([], unreleased)
    if files.latest_version() == 1:
        assert freeze.main(["--check"], unreleased) == 0
        # As if tables/ had changed: the two differ.
        unreleased.write_text(unreleased.read_text().replace("create table lease", "create table leases"))
        assert freeze.main(["--check"], unreleased) == 1
        assert "write the next migration" in capsys.readouterr().err


def test_a_migration_says_which_clients_it_breaks() -> None:
    migration = files.Migration(
        "migrations/0002_x.sql", "-- 0002_x: y.\n-- breaks_below: 2\nselect 1;\n", 2, "x"
    )
    assert migration.breaks_below == 2
    assert files.migrations()[0].breaks_below == 0
