"""The files under sql/, which are part of the package."""

import fnmatch
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ROOT = files("lonnymq") / "sql"
INCLUDE = re.compile(r"^\\ir\s+(\S+)\s*$", re.MULTILINE)
CREATED = re.compile(
    r"^create (?:or replace |unlogged )*(?P<kind>table|type|sequence|function|view) (?P<name>\w+)",
    re.MULTILINE,
)
# A migration that removes what no function uses any more. It runs after the functions are replaced.
CONTRACT = re.compile(r"^-- contract$", re.MULTILINE)
# The tables that a migration changes.
CHANGED_TABLE = re.compile(r"^(?:alter|drop) table (?:if exists )?(?:only )?(\w+)", re.MULTILINE)
# A migration that builds an index on a table in use: this one statement, which runs outside a transaction.
CONCURRENT_INDEX = re.compile(
    r"^create index concurrently if not exists (?P<name>\w+) on (?P<table>\w+) (?P<definition>[^;]+);$",
    re.MULTILINE,
)
BREAKS_BELOW = re.compile(r"^-- breaks_below: (\d+)$", re.MULTILINE)
MIGRATION = re.compile(r"(?P<version>\d{4})_(?P<name>\w+)\.sql")


@dataclass(frozen=True)
class File:
    """One .sql file. Its names are unqualified: it runs with search_path set to the queue's schema."""

    path: str
    text: str


@dataclass(frozen=True)
class Index:
    """An index that a migration builds; `definition` is what follows the name of its table."""

    name: str
    table: str
    definition: str


@dataclass(frozen=True)
class Migration(File):
    """A change to the tables. Immutable once it is released."""

    version: int
    name: str

    @property
    def breaks_below(self) -> int:
        """The lowest version whose clients can use the schema from here on; 0 if this breaks none."""
        found = BREAKS_BELOW.search(self.text)
        return int(found[1]) if found else 0

    @property
    def is_contract(self) -> bool:
        return bool(CONTRACT.search(self.text))

    @property
    def index(self) -> Index | None:
        """The index that this migration builds outside a transaction, if it does only that."""
        found = CONCURRENT_INDEX.search(self.text)
        return Index(**found.groupdict()) if found else None

    @property
    def text_in_transaction(self) -> str:
        """The text for a caller's transaction, in which an index cannot be built concurrently."""
        return self.text.replace(" index concurrently ", " index ") if self.index else self.text

    @property
    def changed_tables(self) -> tuple[str, ...]:
        if self.index:
            return (self.index.table,)
        return tuple(dict.fromkeys(CHANGED_TABLE.findall(self.text)))


def read(path: str) -> File:
    text = ROOT.joinpath(*path.split("/")).read_text(encoding="utf-8")
    return File(path, text)


@cache
def contents() -> tuple[File, ...]:
    """Return the files that install.sql includes, in its order."""
    paths = [path for pattern in INCLUDE.findall(read("install.sql").text) for path in _matching(pattern)]
    return tuple(read(path) for path in dict.fromkeys(paths))


def tables() -> tuple[File, ...]:
    return tuple(file for file in contents() if file.path.startswith("tables/"))


def functions_and_views() -> tuple[File, ...]:
    return tuple(file for file in contents() if not file.path.startswith("tables/"))


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations, oldest first."""
    return tuple(sorted(_migrations(), key=lambda migration: migration.version))


def is_unreleased(text: str) -> bool:
    """Whether this is a first migration that still follows the files in tables/ (see tools/freeze.py)."""
    return INCLUDE.findall(text) == ["../tables"]


def latest_version() -> int:
    return migrations()[-1].version


@cache
def created(kind: str) -> tuple[str, ...]:
    """Return the names of the tables, types, sequences, functions or views that install.sql creates."""
    return tuple(
        match["name"] for file in contents() for match in CREATED.finditer(file.text) if match["kind"] == kind
    )


@cache
def fingerprint() -> str:
    """Return a hash that identifies this set of files."""
    digest = hashlib.sha256()
    for file in (*contents(), read("seed.sql"), *migrations()):
        digest.update(f"{file.path}\n{file.text}\n".encode())
    return digest.hexdigest()[:32]


def _matching(pattern: str) -> list[str]:
    """Return the path, or the paths that match a pattern such as functions/message_*.sql."""
    folder, _, name = pattern.rpartition("/")
    if "*" not in name:
        return [pattern]
    present = sorted(entry.name for entry in ROOT.joinpath(folder).iterdir())
    return [f"{folder}/{one}" for one in fnmatch.filter(present, name)]


def _migrations() -> Iterator[Migration]:
    for entry in (ROOT / "migrations").iterdir():
        found = MIGRATION.fullmatch(entry.name)
        if found:
            text = entry.read_text(encoding="utf-8")
            if is_unreleased(text):
                text = "\n".join(table.text for table in tables())
            yield Migration(f"migrations/{entry.name}", text, int(found["version"]), found["name"])
