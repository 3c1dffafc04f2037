"""What `make test-matrix` downloads, runs and records."""

import base64
import datetime
import hashlib
import re
from pathlib import Path

import pytest

from tools.matrix import __main__ as matrix
from tools.matrix import pythons, report, servers
from tools.matrix.downloads import Download, NotAvailable, fetch, from_url

JUNIT = b'<testsuites><testsuite tests="9" failures="1" errors="2" skipped="1"/></testsuites>'


def _download(path: Path, content: bytes) -> Download:
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    return Download(path.name, lambda: from_url(path.as_uri()), f"sha512-{digest}")


def test_a_file_is_downloaded_once(tmp_path: Path) -> None:
    source, cache = tmp_path / "file.tgz", tmp_path / "cache"
    source.write_bytes(b"content")
    download = _download(source, b"content")
    fetched = fetch(download, cache)
    assert fetched.read_bytes() == b"content"
    source.unlink()
    assert fetch(download, cache) == fetched
    with pytest.raises(NotAvailable, match=r"file\.tgz: "):
        fetch(download, tmp_path / "other")


def test_a_file_with_another_hash_is_refused_from_the_network_and_from_the_cache(tmp_path: Path) -> None:
    source, cache = tmp_path / "file.tgz", tmp_path / "cache"
    source.write_bytes(b"changed")
    (cache / "downloads").mkdir(parents=True)
    (cache / "downloads" / "file.tgz").write_bytes(b"changed")
    with pytest.raises(NotAvailable, match=r"file\.tgz: the file does not have the expected hash"):
        fetch(_download(source, b"content"), cache)


def test_without_options_each_version_is_tested_once_or_more() -> None:
    pairs = matrix.combinations(None, None)
    assert {pg for pg, _ in pairs} == set(servers.PINS)
    assert {python for _, python in pairs} == {*pythons.VERSIONS, pythons.RUNNING}
    assert len(set(pairs)) == len(pairs)


def test_options_select_versions() -> None:
    assert matrix.combinations(["14"], None) == [("14", pythons.RUNNING)]
    assert matrix.combinations(None, ["3.14"]) == [("18", "3.14")]
    assert matrix.combinations(["14", "18"], ["3.12"]) == [("14", "3.12"), ("18", "3.12")]


def test_a_version_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        matrix.main(["--pg", "13"])
    assert "'13' is not a list of 14, 15, 16, 17, 18" in capsys.readouterr().err


def test_the_table_shows_what_failed_and_what_could_not_be_had(tmp_path: Path) -> None:
    results = [report.read("14.23", "3.11.7", JUNIT, 1), report.Result("18", "3.12", problem="no compiler")]
    assert not any(result.is_passed for result in results)
    results[0] = results[0].after_repetition(report.Result("14.23", "3.11.7", passed=2, failed=1))
    assert not results[0].is_passed
    rows = [report.row(one, ["tests/sql", "tests/plans"], datetime.date(2026, 11, 19)) for one in results]
    page = tmp_path / "versions.md"
    page.write_text(f"before\n{report.BEGIN}{report.END}after\n")
    report.write(rows, page)
    head = (
        "| PostgreSQL | Python | tests | date | passed | of these, repeated | failed | skipped |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    first = "| 14.23 | 3.11.7 | `tests/sql`, `tests/plans` | 2026-11-19 | 7 | 2 | 1 | 1 |\n"
    second = "| 18 | 3.12 | `tests/sql`, `tests/plans` | 2026-11-19 | no compiler |  |  |  |\n"
    assert page.read_text() == f"before\n{report.BEGIN}{head}{first}{second}{report.END}after\n"
    # A later run replaces the rows of the same versions and tests.
    again = report.row(
        report.Result("18.4", "3.12.3", 5), ["tests/sql", "tests/plans"], datetime.date(2027, 1, 2)
    )
    other = report.row(report.Result("14.24", "3.11.7", 6), ["tests/client"], datetime.date(2027, 1, 2))
    report.write([again, other], page)
    second = "| 18.4 | 3.12.3 | `tests/sql`, `tests/plans` | 2027-01-02 | 5 | 0 | 0 | 0 |\n"
    third = "| 14.24 | 3.11.7 | `tests/client` | 2027-01-02 | 6 | 0 | 0 | 0 |\n"
    assert page.read_text() == f"before\n{report.BEGIN}{head}{third}{first}{second}{report.END}after\n"


def test_a_run_without_tests_has_not_passed() -> None:
    assert not report.Result("18", "3.12").is_passed


def test_the_page_in_the_docs_can_be_written() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    assert re.search(re.escape(report.BEGIN) + ".*" + re.escape(report.END), text, re.DOTALL)
