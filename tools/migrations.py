"""Check that migrations can run while the queue is in use: `python tools/migrations.py`.

The rules are in docs/howto/change-it.md, and their reasons in docs/adr. They hold for all but the first one.
"""

import re
import sys
from collections.abc import Iterator

from lonnymq.schema import files
from lonnymq.schema.files import Migration

COMMENT = re.compile(r"--[^\n]*")
STATEMENT_END = re.compile(r";\s*(?:\n|$)")
CREATED_TABLE = re.compile(r"create table (?:if not exists )?(\w+)")

# What may run before the functions are replaced: it is done at once, and the functions of both versions work
# with the result. Each statement may run a second time.
EXPANDING = (
    r"create table if not exists \w+ \(.*",
    r"create sequence if not exists .*",
    r"alter table \w+ add column if not exists \w+ (?!.*\b(unique|primary|references|generated|check)\b).*",
    r"alter table \w+ add constraint .* not valid",
    r"alter table \w+ (re)?set \([^)]*\)",
    r"alter table \w+ alter column \w+ (set default|drop default|drop not null)\b.*",
    r"comment on .*",
)
# What may run after the functions are replaced, if neither this version nor the previous one uses it.
CONTRACTING = (
    r"alter table \w+ drop column if exists \w+",
    r"alter table \w+ drop constraint if exists \w+",
    r"drop (table|view|sequence|index|type) if exists \w+",
    r"drop function if exists \w+\(.*\)",
)
# A default that differs from row to row would rewrite the table.
VOLATILE = re.compile(r"\bdefault\b.*\b(nextval|random|gen_random_uuid|clock_timestamp|timeofday)\b")


def violations(migration: Migration) -> Iterator[str]:
    """Yield a sentence for each rule that a migration breaks."""
    if migration.breaks_below >= migration.version:
        yield (
            f"breaks_below must be at most {migration.version - 1}: clients of the previous version use the"
            " schema until they are replaced"
        )
    if migration.is_contract and migration.breaks_below != migration.version - 1:
        yield f"a contract must say `-- breaks_below: {migration.version - 1}`"
    text = COMMENT.sub("", migration.text)
    if "$" in text:
        yield "no dollar quotes: a migration consists of plain statements"
    if "concurrently" in text.lower():
        yield from _violations_of_index(migration, text)
        return
    allowed = CONTRACTING if migration.is_contract else EXPANDING
    created = set(CREATED_TABLE.findall(text.lower()))
    for statement in STATEMENT_END.split(text):
        normal = " ".join(statement.lower().split())
        if normal and not _is_on_new_table(normal, created):
            yield from _violations_of(normal, allowed)


def _violations_of_index(migration: Migration, text: str) -> Iterator[str]:
    """An index is the only statement of its migration, because it is built outside a transaction."""
    index = migration.index
    if (
        index is None
        or len([one for one in STATEMENT_END.split(text) if one.strip()]) > 1
        or migration.is_contract
    ):
        yield (
            "an index on a table in use is built by a migration with this one statement:"
            " `create index concurrently if not exists name on table (...);`"
        )
        return
    tables = {file.path.rpartition("/")[2]: file.text for file in files.tables()}
    partitioned = re.findall(r"create table (\w+) \([^;]*\) partition by", "\n".join(tables.values()))
    if index.table not in files.created("table") or index.table in partitioned:
        yield f"{index.table} must be a table of the queue, and not partitioned"
    if set(re.findall(r"\w+(?=\s*\()", index.definition)) & set(files.created("function")):
        yield f"an index must not depend on functions of the queue, which are replaced: {index.definition}"


def _violations_of(statement: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if not any(re.fullmatch(one, statement) for one in allowed):
        yield f"not among what may run while the queue is in use: {statement}"
    elif VOLATILE.search(statement):
        yield f"a default that differs from row to row rewrites the table: {statement}"
    elif "add column" in statement and "not null" in statement and "default" not in statement:
        yield f"functions of the previous version would not fill this column: {statement}"


def _is_on_new_table(statement: str, created: set[str]) -> bool:
    """Whether this is an index, or a change, of a table that the same migration creates."""
    found = re.match(r"create (?:unique )?index if not exists \w+ on (\w+)|alter table (\w+)", statement)
    return found is not None and (found[1] or found[2]) in created


def main() -> int:
    broken = [
        f"{migration.path}: {violation}"
        for migration in files.migrations()
        if migration.version > 1
        for violation in violations(migration)
    ]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
