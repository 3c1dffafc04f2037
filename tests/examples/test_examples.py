"""Everything that is shown is run: the examples as programs, the pages' blocks in their order."""

import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lonnymq
from lonnymq.embedded import BinariesNotFound, binaries
from lonnymq.schema import files
from tests.examples.pages import (
    ROOT,
    anchors,
    blocks,
    links,
    named_extras,
    runs_alone,
    shows_commands,
    with_policy,
)
from tests.examples.programs import name_of, run

# Files, and packages by their name.
EXAMPLES = sorted(
    [*(ROOT / "examples").glob("*.py"), *(one.parent for one in (ROOT / "examples").glob("*/__main__.py"))]
)
# These start their own server; the others are given one.
# Pages about Spark are run by the tests of the pipeline, which have a session.
FIRST_PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    *(page for page in sorted((ROOT / "docs" / "tutorial").glob("*.md")) if "spark" not in page.name),
]
HOWTO_PAGES = [page for page in sorted((ROOT / "docs" / "howto").glob("*.md")) if blocks(page, "python")]
PAGES_WITH_EXTRAS = [*FIRST_PAGES, *(page for page in HOWTO_PAGES if named_extras(page))]
ALL_PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = ROOT / "docs" / "reference"
SQL_PAGES = [ROOT / "docs" / "howto" / "use-from-sql.md", REFERENCE / "sql.md"]


@pytest.fixture
def binaries_of_embedded() -> None:
    try:
        binaries.find("auto")
    except BinariesNotFound:
        pytest.skip("needs a PostgreSQL to start")


@pytest.mark.usefixtures("binaries_of_embedded")
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_runs_and_its_claims_hold(example: Path) -> None:
    program = [str(example)] if example.is_file() else ["-m", f"examples.{example.name}"]
    ended = subprocess.run(
        [sys.executable, *program], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout


@pytest.mark.usefixtures("binaries_of_embedded")
def test_the_readmes_second_program_needs_nothing_of_the_first() -> None:
    run(ROOT / "README.md", {}, skipped=1)


def test_the_picture_in_the_readme_is_what_one_dequeue_releases(dsn: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = re.search(r"dequeue\(limit=(\d+)\).*\n((?:.+\n)+?)```", readme)
    assert picture
    assert picture[0] in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    limit, lines = int(picture[1]), picture[2]
    rows = re.findall(r"^([\w-]+)(?: at (\d+))? +([\d,]+) +([■· ]+)$", lines, re.MULTILINE)
    assert len(rows) == lines.count("\n")
    # One second apart, so that the channels have waited in the order of the rows.
    begin = datetime.now(UTC) - timedelta(hours=1)
    with lonnymq.Queue(dsn) as queue:
        queue.install()
        for channel, cap, _, _ in rows:
            if cap:
                queue.channel(channel).set(max_concurrency=int(cap))
        # A channel whose policy has just changed would be looked at first.
        assert not queue.dequeue()
        for second, (channel, _, waiting, _) in enumerate(rows):
            at, count = begin + timedelta(seconds=second), int(waiting.replace(",", ""))
            queue.enqueue_many(lonnymq.NewMessage(channel=channel, payload=n, at=at) for n in range(count))
        released = [message.channel for message in queue.dequeue(limit=limit)]
    for channel, _, _, marks in rows:
        assert marks.split() == ["■" if one == channel else "·" for one in released]


def test_no_page_or_message_installs_a_package_that_no_index_has() -> None:
    by_name = re.compile(r"pip install (?:--[\w-]+ (?:\w+ )?)*[\"']?lonnymq\b(?!-)")
    assert by_name.search('pip install --no-deps --target package "lonnymq[cli]"')
    texts = [*ALL_PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert [name_of(text) for text in texts if by_name.search(text.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("page", [page for page in HOWTO_PAGES if not named_extras(page)], ids=name_of)
def test_a_howto_is_a_program(page: Path, dsn: str) -> None:
    if runs_alone(page):
        run_in_another_process(page, dsn)
    else:
        run(page, {"dsn": dsn})


@pytest.mark.usefixtures("binaries_of_embedded")
@pytest.mark.parametrize("page", PAGES_WITH_EXTRAS, ids=name_of)
def test_a_page_is_a_program_that_needs_only_the_extras_it_names(page: Path, dsn: str) -> None:
    run_in_another_process(page, dsn, without=modules_of_other_extras(named_extras(page)))


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if named_extras(page)], ids=name_of)
def test_a_page_names_the_extras_of_what_it_suggests(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if shows_commands(page):
        assert "cli" in named_extras(page)
    if "lonnymq.embedded()" in text:
        assert "embedded" in named_extras(page)


def modules_of_other_extras(named: set[str]) -> set[str]:
    """Return the modules that are missing if only these extras are installed."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras: dict[str, list[str]] = metadata["project"]["optional-dependencies"]

    def distributions(names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for requirement in (one for name in names for one in extras[name]):
            if own := re.fullmatch(r"lonnymq\[([\w,]+)\]", requirement):
                found |= distributions(own[1].split(","))
            else:
                found.add(re.split(r"[^\w-]", requirement)[0])
        return found

    missing = distributions(set(extras) - {"dev", "test"}) - distributions(named)
    return {module for module, owners in installed().items() if missing.intersection(owners)}


@cache
def installed() -> Mapping[str, list[str]]:
    """Return the distributions of each module."""
    return packages_distributions()


def run_in_another_process(page: Path, dsn: str, without: Iterable[str] = ()) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(sys.argv[3:]));"
        " from pathlib import Path; from tests.examples.programs import run;"
        " run(Path(sys.argv[1]), {'dsn': sys.argv[2]})"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code, str(page), dsn, *without],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("page", SQL_PAGES, ids=name_of)
def test_the_sql_blocks_run_in_order(connect: Callable[..., psycopg.Connection[Any]], page: Path) -> None:
    connection = connect(options="")
    found = blocks(page, "sql")
    assert found, f"{name_of(page)} shows no SQL"
    for block in found:
        try:
            connection.execute(block.code.encode())
        except psycopg.Error as error:
            pytest.fail(f"{name_of(page)}:{block.line}: {error}")


@pytest.fixture
def public_functions(connect: Callable[..., psycopg.Connection[Any]]) -> set[str]:
    """What an operator or a tenant may call, and what only the owner may."""
    connection = connect()
    with connection.transaction(force_rollback=True):
        connection.execute("create role lonnymq_documented")
        connection.execute("create role lonnymq_documented_tenant")
        connection.execute("select queue_grant('lonnymq_documented', 'operator')")
        connection.execute("select queue_grant('lonnymq_documented_tenant', 'tenant', '{acme}')")
        rows = connection.execute(
            "select distinct proname::text from pg_proc where pronamespace = 'lonnymq'::regnamespace"
            " and (has_function_privilege('lonnymq_documented', oid, 'execute')"
            " or has_function_privilege('lonnymq_documented_tenant', oid, 'execute'))"
        ).fetchall()
    return {name for (name,) in rows} | {"queue_grant", "queue_revoke", "history_rebase", "ids_advance"}


def test_every_public_function_has_an_example_in_sql(public_functions: set[str]) -> None:
    shown = "\n".join(block.code for page in SQL_PAGES for block in blocks(page, "sql"))
    assert {name for name in public_functions if f"lonnymq.{name}(" not in shown} == set()


def test_every_public_function_has_its_heading_in_the_reference(public_functions: set[str]) -> None:
    headings = anchors(REFERENCE / "sql.md")
    assert public_functions - headings == set()
    assert {name for name in headings if name in files.created("function")} == public_functions


def test_every_parameter_of_a_public_function_is_in_the_reference(
    connect: Callable[..., psycopg.Connection[Any]], public_functions: set[str]
) -> None:
    text = (REFERENCE / "sql.md").read_text(encoding="utf-8")
    rows = connect().execute(
        "select proname::text, unnest(proargnames) from pg_proc where pronamespace = 'lonnymq'::regnamespace"
    )
    missing = {
        f"{name}: {argument}" for name, argument in rows if name in public_functions and argument not in text
    }
    assert missing == set()


def test_every_column_of_a_view_is_in_the_reference(connect: Callable[..., psycopg.Connection[Any]]) -> None:
    text = with_policy((REFERENCE / "views.md").read_text(encoding="utf-8"))
    rows = connect().execute(
        "select table_name::text, column_name::text from information_schema.columns"
        " where table_schema = 'lonnymq' and table_name in"
        " (select table_name from information_schema.views where table_schema = 'lonnymq')"
    )
    missing = [
        f"{view}.{column}" for view, column in rows if f"## {view}" not in text or f"`{column}`" not in text
    ]
    assert missing == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert [name for name in lonnymq.__all__ if f"`{name}" not in text] == []


def test_every_method_of_a_public_class_is_in_the_reference() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    kinds = (
        lonnymq.Queue,
        lonnymq.Channel,
        lonnymq.Message,
        lonnymq.DeadLetters,
        lonnymq.History,
        lonnymq.Crons,
        lonnymq.Tenant,
    )
    missing = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and f"`{name}(" not in text
    ]
    assert missing == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []
