"""The files for GitHub and for deployment are what their schemas say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "vendor.github-workflows": [*sorted((ROOT / ".github" / "workflows").glob("*.yml"))],
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_for_github_is_valid(schema: str) -> None:
    files = [str(file) for file in SCHEMAS[schema]]
    assert files
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_commands_of_the_workflows_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in workflow.read_text(encoding="utf-8").splitlines():
            command = line.strip().removeprefix("- ").removeprefix("run: ").split()
            if command[:1] == ["make"]:
                assert f"\n{command[1]}:" in makefile
            if ".venv/bin/python" in command:
                assert all((ROOT / name).is_dir() for name in command if name.startswith("tests/"))
