"""Inserts yield points into the files of the queue's functions, by rule: it knows no function by name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from lonnymq.schema import files
from lonnymq.schema.files import File
from tests.interleavings.statements import Token, statements, tokens, without_strings

FUNCTION = re.compile(
    r"create or replace function (?P<name>\w+)\(.*?\blanguage (?P<language>\w+)"
    r".*?\bas \$\$(?P<body>.*?)\$\$;",
    re.DOTALL,
)
# Tables that concurrent calls do not change.
NOT_SHARED = re.compile(r"migration")
TRANSACTIONS = "the list of transactions"


@dataclass(frozen=True)
class Point:
    """A yield point, the shared tables that its statement uses, and those that it writes or locks."""

    label: str
    used: frozenset[str]
    changed: frozenset[str]


@dataclass
class Instrument:
    """Rewrites files. `points` are the yield points by number."""

    points: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        shared = [name for name in files.created("table") if not NOT_SHARED.fullmatch(name)]
        names = "|".join([*shared, r"\w+_id_seq"])
        self._uses = re.compile(rf"(?:\b(?:from|join|into|update|using)|,) ({names})\b")
        self._changes = re.compile(rf"\b(?:into|update|delete from) ({names})\b")
        self._shared = frozenset(shared)
        self._texts = self._texts_without_points(files.functions_and_views())

    def rewrite(self, file: File) -> str:
        """Return the text of a file with yield points in the function that it defines."""
        function = FUNCTION.search(file.text)
        if function is None:
            return file.text
        before, body, after = _split(file.text, function)
        if function["language"] == "plpgsql":
            body = self._rewrite_plpgsql(function["name"], body, before.count("\n") + 1)
        else:
            body = self._inside(function["name"], body)
        return f"{before}{body}{after}"

    def _rewrite_plpgsql(self, name: str, body: str, first_line: int) -> str:
        """An ASSERT calls the yield point: PERFORM would set FOUND, and an assignment needs a variable."""
        parts, last = [], 0
        for one in statements(body):
            if self.tables(one.text)[0] and one.can_be_preceded and not one.text.startswith("raise "):
                line = first_line + body.count("\n", 0, one.start)
                label = f"{name}:{line} {' '.join(one.text.split())[:70]}"
                call = self._point(label, one.text)
                parts += [body[last : one.start], f"assert {call}; ", self._inside(label, one.text)]
                last = one.end
        return "".join([*parts, body[last:]])

    def _point(self, label: str, text: str) -> str:
        self.points.append(Point(label, *self.tables(text)))
        return f"interleavings.yield_at({len(self.points) - 1})"

    def tables(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the shared tables that a statement uses, and those that it writes or locks.

        This includes what is used by functions that the statement calls, where no yield point can be.
        """
        return self._tables(without_strings(text))

    def _tables(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        if re.search(r"\bexecute\b", text):
            # This runs text that is only known later.
            return self._shared, self._shared
        used, changed = set(self._uses.findall(text)), set(self._changes.findall(text))
        if "for update" in text:
            changed |= used
        if "message_id_seq" in text:
            changed.add("message_id_seq")
        # An insert draws an id.
        changed |= {f"{one}_id_seq" for one in re.findall(r"\binsert into (message|wake)\b", text)}
        # A statement that changes something may begin a transaction, which queue_horizon() sees at once.
        if changed:
            used.add(TRANSACTIONS)
        if "pg_snapshot_xmin" in text:
            changed.add(TRANSACTIONS)
        for name in re.findall(r"\b(\w+) \(", text):
            if name in self._texts:
                more_used, more_changed = self._tables(self._texts[name])
                used |= more_used
                changed |= more_changed
        return frozenset(used | changed), frozenset(changed)

    def _texts_without_points(self, all_files: Iterable[File]) -> dict[str, str]:
        """Return the text of each function in SQL, and the declarations of those in plpgsql."""
        texts = {}
        for file in all_files:
            if function := FUNCTION.search(file.text):
                body = function["body"]
                if function["language"] == "plpgsql":
                    body = " ".join(one.text for one in statements(body) if one.is_declaration)
                texts[function["name"]] = without_strings(body)
        return texts

    def _inside(self, label: str, text: str) -> str:
        """Insert a yield point between the snapshot of a statement that locks rows and its first lock.

        It is a sub-select without a reference to the rows: PostgreSQL evaluates it once, before it reads any.
        """
        original, found = text, tokens(text)
        places = {place for at in range(len(found)) if (place := self._lock(found, at)) is not None}
        for place in sorted(places, reverse=True):
            call = self._point(f"{label} (after its snapshot)", original)
            text = f"{text[:place]} (select {call}) and {text[place:]}"
        return text

    def _lock(self, found: list[Token], at: int) -> int | None:
        """Return the end of the `where` of the select for update, update or delete that this token names."""
        words = [one.text for one in found[at : at + 3]] + ["", ""]
        is_update = words[0] == "update" and words[1] in self._shared and _is_first(found, at)
        if words[:2] == ["for", "update"]:
            where = _same_level(found, range(at, -1, -1))
        elif is_update or (words[:2] == ["delete", "from"] and words[2] in self._shared):
            where = _same_level(found, range(at, len(found)))
        else:
            return None
        return None if where is None else found[where].end


def _split(text: str, function: re.Match[str]) -> tuple[str, str, str]:
    return text[: function.start("body")], function["body"], text[function.end("body") :]


def _is_first(found: list[Token], at: int) -> bool:
    """Whether this `update` begins a statement, unlike those of `for update` and `do update`."""
    return at == 0 or found[at - 1].text not in ("for", "do")


def _same_level(found: list[Token], places: range) -> int | None:
    """Return the next `where` that is in no deeper parentheses and does not leave the present ones."""
    depth = 0
    for at in places:
        text = found[at].text
        depth += ((text == "(") - (text == ")")) * places.step
        if depth < 0:
            return None
        if depth == 0 and text == "where":
            return at
    return None
