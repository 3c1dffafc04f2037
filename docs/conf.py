"""Builds the documentation as a site: `make docs`, then open build/docs/index.html."""

import re
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import lonnymq

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:]+)\)")

project = "LonnyMQ for Python"
author = "LonnyMQ contributors"
project_copyright = author
release = installed_version("lonnymq")
version = release

# Pages outside docs/ belong to the site, too, so the source of the site is the whole checkout.
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/**/*.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "build", "src", "tests", "benchmarks", "examples", "tools"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# SQL with psql's variables, and programs that are shown in parts.
suppress_warnings = ["misc.highlighting_failure"]

# autodoc does not see names that are loaded when they are first used.
vars(lonnymq).update({name: getattr(lonnymq, name) for name in lonnymq.__all__})
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
# Leads from build/docs to the front page.
html_extra_path = ["_root"]
html_show_sphinx = False
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}


def is_page(path: Path) -> bool:
    """Whether a file of the checkout is a page of the site."""
    if not path.is_file() or path.suffix != ".md" or not path.is_relative_to(ROOT):
        return False
    return path.relative_to(ROOT).parts[0] == "docs" or (path.parent == ROOT and path.name != "README.md")


def name_files_instead_of_linking(app: Any, document: str, source: list[str]) -> None:
    """Replace links to program files, which the site does not contain, with their paths."""
    folder = (ROOT / document).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = (folder / target.partition("#")[0]).resolve()
        if target.startswith("#") or not path.exists() or is_page(path):
            return link[0]
        if path == ROOT / "README.md":
            return f"[{text}](/docs/index.md)"
        name = path.relative_to(ROOT)
        return text if text.strip("`").endswith(path.name) else f"{text} (`{name}`)"

    source[0] = LINK.sub(replaced, source[0])


def mark_code(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show `code` and indented blocks in docstrings as code, as Markdown does."""
    marked: list[str] = []
    was_indented = False
    for line in lines:
        is_indented = line.startswith("    ") or (was_indented and not line)
        if is_indented and not was_indented and marked and not marked[-1]:
            marked += ["::", ""]
        marked.append(line if is_indented else re.sub(r"(?<![`:])`([^`\n]+)`(?!`)", r"``\1``", line))
        was_indented = is_indented
    lines[:] = marked


def setup(app: Any) -> None:
    app.connect("source-read", name_files_instead_of_linking)
    app.connect("autodoc-process-docstring", mark_code)
