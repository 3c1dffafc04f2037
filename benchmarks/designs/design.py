"""A design as its SQL file tells it: a header, and sections that are run in their order.

The files are psql scripts too: `psql -v rows=10000 -v first=1 -v last=10000 -f fifo.sql`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SECTIONS = ("create", "load", "prepare", "worsen", "pick", "renew")
FAMILIES = {
    "order": "First in, first out",
    "priority": "Priorities",
    "flag": "A flag for what is available",
    "recovery": "Messages of workers that died",
    "iteration": "A timestamp as state",
    "channels": "Channels",
}
FACT = re.compile(r"^-- (families|case|published|install|snapshot): (.+)$")
INCLUDE = re.compile(r"^\\ir (\S+)$", re.MULTILINE)
VARIABLE = re.compile(r"(?<![:\w]):(rows|first|last)\b")
# Dollar quotes and comments may hold semicolons that end nothing.
TOKEN = re.compile(r"\$(\w*)\$.*?\$\1\$|--[^\n]*|;", re.DOTALL)


class BadDesign(ValueError):
    """A design's file does not say what it must."""


@dataclass(frozen=True)
class Design:
    """One way to keep messages in tables; `sections` is SQL with :rows, :first and :last."""

    name: str
    title: str
    families: tuple[str, ...]
    case: str
    published: str | None
    # Installed by the product's own installer, and judged for being flat.
    is_ours: bool
    # Another session holds a snapshot from before `worsen` until the end.
    is_snapshot_held: bool
    sections: Mapping[str, str]

    def statements(self, section: str, *, rows: int, first: int = 1, last: int | None = None) -> list[str]:
        """Return the statements of a section, for these numbers."""
        values = {"rows": rows, "first": first, "last": rows if last is None else last}
        text = VARIABLE.sub(lambda match: str(values[match[1]]), self.sections.get(section, ""))
        return list(split(text))


def catalogue(folder: Path = FOLDER) -> list[Design]:
    """Return all designs, family by family; files without a [pick] are parts of others."""
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
        raise BadDesign(f"{name}.sql must begin with '-- {name}: ' and what it is")
    if unknown := set(families) - FAMILIES.keys():
        raise BadDesign(f"{name}.sql: families must be of {', '.join(FAMILIES)}, not {unknown}")
    if unknown := sections.keys() - set(SECTIONS):
        raise BadDesign(f"{name}.sql: sections must be of {', '.join(SECTIONS)}, not {unknown}")
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
