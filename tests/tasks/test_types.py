"""The type checker finds wrong arguments in calls of tasks."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py.txt")


def test_the_type_checker_refuses_wrong_arguments_only(tmp_path: Path) -> None:
    """Lines that end in `# wrong` must be refused, all others accepted."""
    program = tmp_path / "typed_program.py"
    program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)]
    # Without the project's cache this takes half a minute.
    cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
    checked = subprocess.run([*command, *cache], capture_output=True, text=True, cwd=ROOT, check=False)
    found = {int(line) for line in re.findall(r"typed_program\.py:(\d+): error", checked.stdout)}
    lines = program.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 10
    assert found == wrong, checked.stdout + checked.stderr
