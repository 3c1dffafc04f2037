"""Write migrations/0001_create_queue.sql from tables/: `python tools/freeze.py [--check]`.

Only while it is the only migration: from version 2 on it is immutable, and tables change by new migrations.
"""

import argparse
import sys
from pathlib import Path

from lonnymq.schema import files

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "lonnymq" / "sql" / "migrations" / "0001_create_queue.sql"
HEADER = "-- 0001_create_queue: the tables of version 1. Frozen from tables/ by tools/freeze.py.\n"


def first_migration() -> str:
    return "\n".join([HEADER, *(file.text for file in files.tables())])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Freeze the tables of version 1 into its migration.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it is out of date")
    is_check = parser.parse_args(arguments).check
    if files.latest_version() > 1:
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == first_migration():
        return 0
    if is_check:
        print(
            "migrations/0001_create_queue.sql differs from tables/; run: python tools/freeze.py",
            file=sys.stderr,
        )
        return 1
    TARGET.write_text(first_migration(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
