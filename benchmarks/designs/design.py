"""Reads a design from its SQL file: a header, and sections that are run in order.

The files are also psql scripts: `psql -v rows=10000 -v first=1 -v last=10000 -f fifo.sql`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SECTIONS = ("create", "load", "prepare", "worsen", "pick", "replenish")
FAMILIES = {
    "order": "First in, first out",
    "priority": "Priorities",
    "flag": "A flag for available messages",
    "recovery": "Messages of dead workers",
    "iteration": "A timestamp as state",
    "channels": "Channels",
}
FACT = re.compile(r"^-- (families|case|published|install|snapshot): (.+)$")
INCLUDE = re.compile(r"^\\ir (\S+)$", re.MULTILINE)
VARIABLE = re.compile(r"(?<![:\w]):(rows|first|last)\b")
# Semicolons in dollar quotes and comments do not end a statement.
TOKEN = re.compile(r"\$(\w*)\$.*?\$\1\$|--[^\n]*|;", re.DOTALL)


class BadDesign(ValueError):
    """A design's file is incomplete or malformed."""


@dataclass(frozen=True)
class Design:
    """A way to keep messages in tables; `sections` contain SQL with :rows, :first and :last."""

    name: str
    title: str
    families: tuple[str, ...]
    case: str
    published: str | None
    # LonnyMQ itself: installed by its own installer, and checked for constant pick times.
    is_ours: bool
    # Whether another session holds a snapshot from before `worsen` until the end.
    is_snapshot_held: bool
    sections: Mapping[str, str]

    def statements(self, section: str, *, rows: int, first: int = 1, last: int | None = None) -> list[str]:
        """Return the statements of a section, with these numbers inserted."""
        values = {"rows": rows, "first": first, "last": rows if last is None else last}
        text = VARIABLE.sub(lambda match: str(values[match[1]]), self.sections.get(section, ""))
        return list(split(text))


def catalogue(folder: Path = FOLDER) -> list[Design]:
    """Return all designs by family; files without a [pick] are included by other files."""
    files = [(path, path.read_text()) for path in sorted(folder.glob("*.sql"))]
    designs = [read(path.stem, text, folder) for path, text in files if "-- [pick]" in text]
    order = list(FAMILIES)
    return sorted(designs, key=lambda design: (design.is_ours, order.index(design.families[0])))


def read(name: str, text: str, folder: Path = FOLDER) -> Design:
    header, *parts = re.split(r"^-- \[(\w+)\]\n", text, flags=re.MULTILINE)
    sections = {
        section: INCLUDE.sub(lambda match: (folder / match[1]).read_text(), body).strip()
        for section, body in zip(parts[::2], parts[1::2], strict=True)
    }
    lines = header.strip().splitlines()
    facts = {match[1]: match[2] for line in lines if (match := FACT.match(line))}
    families = tuple(facts.get("families", "").split(", "))
    if not lines[0].startswith(f"-- {name}: "):
        raise BadDesign(f"{name}.sql must begin with '-- {name}: ' and a title")
    if unknown := set(families) - FAMILIES.keys():
        raise BadDesign(f"{name}.sql: unknown families {unknown}: families are {', '.join(FAMILIES)}")
    if unknown := sections.keys() - set(SECTIONS):
        raise BadDesign(f"{name}.sql: unknown sections {unknown}: sections are {', '.join(SECTIONS)}")
    if "case" not in facts or not {"load", "pick"} <= sections.keys():
        raise BadDesign(f"{name}.sql must have a case, a [load] and a [pick]")
    return Design(
        name=name,
        title=lines[0].removeprefix(f"-- {name}: "),
        families=families,
        case=facts["case"],
        published=facts.get("published"),
        is_ours=facts.get("install") == "lonnymq",
        is_snapshot_held=facts.get("snapshot") == "held",
        sections=sections,
    )


def split(text: str) -> Iterator[str]:
    """Yield the statements of a script, without their semicolons."""
    begin = 0
    for match in TOKEN.finditer(text):
        if match[0] == ";":
            yield text[begin : match.start()].strip()
            begin = match.end()
    if text[begin:].strip():
        raise BadDesign(f"a statement does not end with a semicolon: {text[begin:].strip()[:60]}")
