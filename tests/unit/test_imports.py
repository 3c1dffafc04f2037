"""The import contracts also hold for imports by a string, which import-linter does not see."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
# The package's public names are loaded when they are first used.
LAZY = SOURCE / "lonnymq" / "__init__.py"
IMPORTERS = ("import_module", "__import__")


def imports_by_string(path: Path) -> list[str]:
    """Return the modules of ours that a file imports by their name in a string."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        argument.value
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", None)) in IMPORTERS
        for argument in call.args
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and argument.value.startswith(("lonnymq", "."))
    ]


def test_none_of_our_modules_is_imported_by_a_string() -> None:
    found = {str(path): imports_by_string(path) for path in SOURCE.rglob("*.py") if path != LAZY}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_detector_finds_imports_by_a_string() -> None:
    assert imports_by_string(LAZY)


def test_the_base_install_works_without_psycopg_pool() -> None:
    program = (
        "import sys; sys.modules['psycopg_pool'] = None; import lonnymq, lonnymq.worker; lonnymq.Queue('')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
