"""Fills in the generated parts of pages: the text between two marks is replaced, the rest is kept."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.wrap import wrap

MARK = re.compile(
    r"(?P<begin><!-- made by make bench-charts: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
# In a part, this stands for the path from the page to the folder of the charts.
RESULTS = "{results}"


class UnknownPart(ValueError):
    """A page has a mark for a part that is not generated."""


@dataclass(frozen=True)
class Output:
    """Generated charts by file name, and parts of pages by name."""

    charts: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def __or__(self, other: "Output") -> "Output":
        return Output(self.charts | other.charts, self.parts | other.parts)


def fill_page(page: Path, text: str, output: Output, results: Path) -> str:
    """Return the page's text with all its parts replaced."""
    folder = Path(os.path.relpath(results, page.parent)).as_posix()

    def replace(match: re.Match[str]) -> str:
        if match["name"] not in output.parts:
            raise UnknownPart(
                f"{page.name} marks unknown part {match['name']}: parts are {', '.join(output.parts)}"
            )
        content = output.parts[match["name"]].replace(RESULTS, folder).strip()
        content = "\n".join(wrap(content.splitlines()))
        return f"{match['begin']}\n{content}\n\n{match['end']}"

    return MARK.sub(replace, text)


def table(heading: list[str], rows: list[list[str]], numbers_from: int = 1) -> str:
    """Return a Markdown table; columns from `numbers_from` on are right-aligned."""
    rule = ["---" if number < numbers_from else "---:" for number in range(len(heading))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heading, rule, *rows])


def image(title: str, file: str) -> str:
    return f"![{title}]({RESULTS}/{file})"
