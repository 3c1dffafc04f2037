"""Parts of pages that are made: what stands between two marks is written anew, the rest is the author's."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

MARK = re.compile(
    r"(?P<begin><!-- made by make bench-charts: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
# In a part: the folder of the charts, as seen from the page.
RESULTS = "{results}"


class UnknownPart(ValueError):
    """A page asks for a part that nobody makes."""


@dataclass(frozen=True)
class Output:
    """Charts by their file names, and parts of pages by theirs."""

    charts: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def __or__(self, other: "Output") -> "Output":
        return Output(self.charts | other.charts, self.parts | other.parts)


def fill_page(page: Path, text: str, made: Output, results: Path) -> str:
    """Return the page's text with all its parts made anew."""
    folder = Path(os.path.relpath(results, page.parent)).as_posix()

    def part(match: re.Match[str]) -> str:
        if match["name"] not in made.parts:
            raise UnknownPart(f"{page.name} asks for {match['name']}; there are {', '.join(made.parts)}")
        content = made.parts[match["name"]].replace(RESULTS, folder).strip()
        return f"{match['begin']}\n{content}\n\n{match['end']}"

    return MARK.sub(part, text)


def table(heading: list[str], rows: list[list[str]], numbers_from: int = 1) -> str:
    """Return a table of Markdown; columns from that one on are figures."""
    rule = ["---" if number < numbers_from else "---:" for number in range(len(heading))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heading, rule, *rows])


def image(title: str, file: str) -> str:
    return f"![{title}]({RESULTS}/{file})"
