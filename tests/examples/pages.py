"""Code blocks of Markdown pages, as they are run by the tests."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = "<!-- not run -->"
# On a page that changes its process for good, as frameworks do that are configured once.
RUN_ALONE = "<!-- run alone -->"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXTRAS = re.compile(r'pip install "[./][^"\[]*\[([\w,]+)\]"')
# A command of ours in a block of shell commands.
SHELL_COMMAND = re.compile(r"^(?: {4})?lonnymq \w", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is where its code begins."""

    page: Path
    language: str
    line: int
    code: str


def blocks(page: Path, language: str) -> list[Block]:
    """Return the page's blocks of a language, but for those marked as not run."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, language, text.count("\n", 0, match.start()) + 2, match[2])
        for match in FENCE.finditer(text)
        if match[1] == language and not text[: match.start()].rstrip().endswith(NOT_RUN)
    ]


def with_policy(text: str) -> str:
    """Return a page's text; if it links to the table of a channel's policy, with that table."""
    if "settings.md#policy-of-a-channel" not in text:
        return text
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    return text + settings.partition("## Policy of a channel\n")[2].partition("\n## ")[0]


def runs_alone(page: Path) -> bool:
    """Whether the page's program needs a process of its own."""
    return RUN_ALONE in page.read_text(encoding="utf-8")


def named_extras(page: Path) -> set[str]:
    """Return the extras with which the page says to install the package; none if it does not say."""
    named = EXTRAS.findall(page.read_text(encoding="utf-8"))
    return {extra for extras in named for extra in extras.split(",")}


def shows_commands(page: Path) -> bool:
    """Whether the page shows how to call the command line."""
    return bool(SHELL_COMMAND.search(page.read_text(encoding="utf-8")))


def links(page: Path) -> list[str]:
    """Return the targets of the page's links into this repository."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [target for target in LINK.findall(text) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Return what can follow a # in a link to this page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
