"""Freeze version 1 of the schema for its release: `python tools/freeze.py [--check]`.

Until then migrations/0001_create_queue.sql only refers to tables/. This writes their text into it, once. From
then on that file never changes, and tables change by new migrations.
"""

import argparse
import sys
from pathlib import Path

from lonnymq.schema import files

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "lonnymq" / "sql" / "migrations" / "0001_create_queue.sql"
HEADER = "-- 0001_create_queue: the tables of version 1. Released: this file never changes again.\n"
NEXT_STEP = 'write the next migration, see "A migration" in docs/howto/change-it.md'


def tables_of_version_1() -> str:
    return "\n".join([HEADER, *(file.text for file in files.tables())])


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    parser = argparse.ArgumentParser(description="Freeze the tables of version 1 into its migration.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if tables/ changed without a migration"
    )
    is_check = parser.parse_args(arguments).check
    present = target.read_text(encoding="utf-8")
    if files.is_unreleased(present):
        if not is_check:
            target.write_text(tables_of_version_1(), encoding="utf-8")
        return 0
    if not is_check:
        return _refuse(f"{target.name} is released and never changes again: {NEXT_STEP}")
    # With more migrations, tests/migration compares their result with tables/.
    if files.latest_version() == 1 and present != tables_of_version_1():
        return _refuse(f"tables/ differs from the released version 1: {NEXT_STEP}")
    return 0


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
