"""Wraps lines of Markdown that are wider than 120 columns: .venv/bin/python tools/wrap.py [--check].

Paragraphs and list items are filled again from such a line on. Tables and code are left alone, and so is a
word that is too long by itself, such as a link. --check only names the lines; it also finds them in code.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
# What may be the beginning of a line, and means something else there.
MARKER = re.compile(r"(?:[-+*>#|:]|\d+[.)]$)")
ITEM = re.compile(r"( *)(?:[-*+]|\d+[.)]) +")
# Where a paragraph ends: an empty line, a heading, a table, an item, a fence, a comment or a directive.
BOUNDARY = re.compile(r"\s*$|\s*(?:#+ |\||[-*+] |\d+[.)] |```|<!--|\{|:::)")
# A word, with what may not be torn apart: short code, and what follows it.
WORD = re.compile(r"(?:`[^`\n]{1,60}`|\S)+")


def main(arguments: list[str]) -> int:
    found = 0
    for page in pages():
        lines = page.read_text(encoding="utf-8").splitlines()
        if "--check" not in arguments:
            lines = wrap(lines)
            page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for number in too_wide(lines):
            found += 1
            print(
                f"{page.relative_to(ROOT)}:{number} is wider than {WIDTH} columns; make format wraps prose",
                file=sys.stderr,
            )
    return int(found > 0)


def pages() -> list[Path]:
    """Return all pages of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / ".github").glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def too_wide(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of lines that are too wide, and could be wrapped."""
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH and not line.lstrip().startswith("|") and len(WORD.findall(line)) > 2:
            yield number


def wrap(lines: list[str]) -> list[str]:
    """Return the lines, with paragraphs filled from their first line that is too wide."""
    wrapped: list[str] = []
    index, is_code, is_item = 0, False, False
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_item = bool(ITEM.match(line)) or (is_item and line.startswith("  ")) or (is_item and not line)
        is_prose = not is_code and (is_item or not line.startswith("    "))
        if len(line) <= WIDTH or not is_prose or (BOUNDARY.match(line) and not ITEM.match(line)):
            wrapped.append(line)
            continue
        text = [line]
        while index < len(lines) and not BOUNDARY.match(lines[index]):
            text.append(lines[index])
            index += 1
        wrapped += fill(text)
    return wrapped


def fill(text: list[str]) -> list[str]:
    """Fill the lines of a paragraph again, the first with its marker, the others with its indentation."""
    item = ITEM.match(text[0])
    first = item[0] if item else text[0][: len(text[0]) - len(text[0].lstrip())]
    rest = " " * len(first)
    if len(text) > 1:
        rest = text[1][: len(text[1]) - len(text[1].lstrip())]
    words: list[str] = []
    for word in WORD.findall(" ".join([text[0][len(first) :], *text[1:]])):
        if words and MARKER.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    lines, line = [], first + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = rest + word
        else:
            line = f"{line} {word}"
    return [*lines, line]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
