"""Three releases of the package, each in a folder: the wheel of this checkout, and two made from it.

The second has a new column, an index on it, a function with a new signature beside the old one, a changed
function, and a function that workers did not have. The third removes a column that the second does not use
any more.
"""

import compileall
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools import freeze

ROOT = Path(__file__).resolve().parents[2]

TABLE_END = "\n) with ("
EXPAND = """-- 0002_add_note: a note on a message.
alter table message add column if not exists note text;
"""
INDEX = """-- 0003_index_note: messages with a note, by note.
create index concurrently if not exists message_note_ix on message (note) where note is not null;
"""
CONTRACT = """-- 0004_drop_spare: the column that no function uses.
-- contract
-- breaks_below: 3
alter table message drop column if exists spare;
"""
# Beside message_create: the new parameter has no default, so a call finds exactly one of the two.
NOTED = """
create or replace function message_create(p_channel text, p_content bytea, p_note text) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_created record;
begin
  select * into v_created from message_create(p_channel => p_channel, p_content => p_content);
  update message m set note = p_note where m.id = v_created.message_id;
  return v_created.outcome;
end
$$;
"""
# Workers may call it, and no role was granted it in version 1.
COUNT = """-- message_count_noted: how many messages have a note.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_count_noted() returns bigint
language sql stable security definer
set search_path from current
as $$
  select count(*) from message m where m.note is not null
$$;
"""


def make_releases(folder: Path) -> None:
    """Make all three in a folder."""
    make_third(make_next(build_wheel(folder), folder), folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout, and return the folder into which it is unpacked."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = (folder / "dist").glob("*.whl")
    unpacked = folder / "released"
    zipfile.ZipFile(wheel).extractall(unpacked)
    sql = unpacked / "lonnymq" / "sql"
    # As in a release.
    _replace(sql / "tables" / "message.sql", TABLE_END, ",\n  spare text" + TABLE_END)
    freeze_tables(sql)
    # Once for all releases, which are copies with the same times.
    compileall.compile_dir(unpacked, quiet=1)
    return unpacked


def freeze_tables(sql: Path) -> None:
    """Write the tables into the first migration, as tools/freeze.py does for the first release."""
    contents = (sql / "install.sql").read_text(encoding="utf-8")
    tables = [line.split()[1] for line in contents.splitlines() if line.startswith("\\ir tables/")]
    texts = [(sql / table).read_text(encoding="utf-8") for table in tables]
    first = sql / "migrations" / "0001_create_queue.sql"
    first.write_text("\n".join([freeze.HEADER, *texts]), encoding="utf-8")


def make_next(released: Path, folder: Path) -> Path:
    """Return the folder of the second release."""
    later = folder / "second"
    shutil.copytree(released, later)
    sql = later / "lonnymq" / "sql"
    (sql / "migrations" / "0002_add_note.sql").write_text(EXPAND)
    (sql / "migrations" / "0003_index_note.sql").write_text(INDEX)
    table = sql / "tables" / "message.sql"
    _replace(table, TABLE_END, ",\n  note text" + TABLE_END)
    table.write_text(table.read_text() + INDEX.replace(" concurrently if not exists", ""))
    create = sql / "functions" / "message_create.sql"
    create.write_text(create.read_text() + NOTED)
    (sql / "functions" / "message_count_noted.sql").write_text(COUNT)
    _replace(
        sql / "functions" / "kind_rights.sql", "'message_read',", "'message_read', 'message_count_noted',"
    )
    # A changed function, which needs the new column.
    _replace(
        sql / "functions" / "message_complete.sql",
        "\nbegin\n",
        "\nbegin\n  perform m.note from message m where m.id = any(p_ids[1:1]);\n",
    )
    return later


def make_third(later: Path, folder: Path) -> Path:
    """Return the folder of the third release."""
    third = folder / "third"
    shutil.copytree(later, third)
    sql = third / "lonnymq" / "sql"
    (sql / "migrations" / "0004_drop_spare.sql").write_text(CONTRACT)
    _replace(sql / "tables" / "message.sql", "  spare text,\n", "")
    return third


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} does not contain {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
