"""Only plpgsql functions change data: Python under src calls them, and writes to no table itself."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

NAME = r"""(?:"[^"]*"|[^\s;"(])+"""
DATA_CHANGE = re.compile(
    rf"""
      \binsert\s+into\b
    | \bdelete\s+from\b
    | \bmerge\s+into\b
    | \bupdate\s+(?:only\s+)?{NAME}(?:\s+(?:as\s+)?\w+)?\s+set\b
    | \btruncate\s+table\b | (?:^|;)\s*truncate\s+\S
    | \bcopy\s+{NAME}\s*(?:\([^)]*\)\s*)?from\s+(?:stdin\b|program\b|['%$:{{])
    """,
    re.IGNORECASE | re.VERBOSE,
)
SQL_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*(?:\n|$)", re.DOTALL)


def changes_data(text: str) -> bool:
    # With and without comments: a comment may split a statement, or only look like a comment.
    return any(DATA_CHANGE.search(reading) for reading in (text, SQL_COMMENT.sub(" ", text)))


def data_changing_lines(source: str) -> list[int]:
    """Return the lines of the string literals that contain data-changing SQL."""
    return [line for line, text in _texts(ast.parse(source)) if changes_data(text)]


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each whole text with its line; skip docstrings, because nothing executes them."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.expr):
        parts = list(_parts(node))
        if any(isinstance(part, str) for part in parts):
            yield node.lineno, "".join(part if isinstance(part, str) else "{}" for part in parts)
            inner = [part for part in parts if isinstance(part, ast.AST)]
    for child in inner:
        yield from _texts(child)


def _parts(node: ast.expr) -> Iterator[str | ast.expr]:
    """Split literals, f-strings and their sums into known text and expressions of unknown value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Constant(value=bytes(data)):
            yield data.decode("latin-1")
        case ast.JoinedStr(values=values):
            for value in values:
                yield from _parts(value)
        case ast.FormattedValue(value=value):
            yield from _parts(value)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from _parts(left)
            yield from _parts(right)
        case _:
            yield node


def test_no_python_file_under_src_changes_data() -> None:
    offences = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in data_changing_lines(path.read_text(encoding="utf-8"))
    ]
    assert not offences, "put this SQL into a function under sql/functions"


@pytest.mark.parametrize(
    "source",
    [
        'execute("insert into message values (1)")',
        'execute("INSERT\\n  INTO message values (1)")',
        'execute("insert " "into message")',
        'execute("insert " + "into " + table)',
        'execute(f"delete from {table} where true")',
        'execute(b"delete from message")',
        'execute("delete /* all */ from message")',
        "execute('update message set id = 1')",
        "execute('update only \"my schema\".message as m set id = 1')",
        'execute(f"update {schema}.message m set id = 1")',
        'execute("with gone as (delete from lease returning *) select 1")',
        'execute("merge into message using x on true")',
        'execute("truncate message")',
        'execute("select 1; truncate table message")',
        'copy("copy message from stdin")',
        'copy(f"COPY {table} (id, content) FROM STDIN (format binary)")',
        "f\"{run('delete from message')}\" + 'x'",
        'run("x" + call("delete from message"))',
    ],
)
def test_the_detector_finds_data_changes(source: str) -> None:
    assert data_changing_lines(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        'execute("select * from message_create(%s)")',
        'execute("select 1 from turn for update skip locked")',
        'execute("set local search_path to x")',
        'execute("copy (select 1) to stdout")',
        'help("Copy messages from a file, truncate long ones, update the channel")',
        'def f():\n    """Never insert into or delete from a table here."""',
        "# insert into message",
    ],
)
def test_the_detector_ignores_queries_and_prose(source: str) -> None:
    assert data_changing_lines(source) == []
