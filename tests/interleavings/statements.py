"""Splits the body of a plpgsql function into statements, well enough to insert code before each of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|\w+|\S", re.DOTALL
)
# Words that are followed by the next statement at once.
OPENING = {"begin", "else", "loop", "exception"}
# The word that ends the head of a statement with a body. All others end with a semicolon.
HEADS = {"if": "then", "elsif": "then", "when": "then", "for": "loop", "while": "loop", "foreach": "loop"}


@dataclass(frozen=True)
class Token:
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Statement:
    """A statement of a function's body, or the head of one that has a body itself, such as `if … then`."""

    start: int
    text: str
    is_declaration: bool = False
    # Nothing can be inserted before an `elsif`, because it belongs to the statement before it.
    can_be_preceded: bool = True

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str) -> list[Token]:
    """Return the words, strings and signs of a piece of SQL, without its comments."""
    found = (Token(one.start(), one.end(), one[0].lower()) for one in TOKEN.finditer(text))
    return [one for one in found if not one.text.startswith(("--", "/*"))]


def without_strings(text: str) -> str:
    """Return the text in lower case, without comments and without the contents of strings."""
    return " ".join("''" if one.text.startswith(("'", "$")) else one.text for one in tokens(text))


def statements(body: str) -> Iterator[Statement]:
    """Yield the statements of a body in order, also those inside loops and branches."""
    found = tokens(body)
    at = 0
    while at < len(found):
        word, start = found[at].text, found[at].start
        if word in OPENING:
            at += 1
        elif word == "#":  # a directive ends with its line
            line_end = body.index("\n", start)
            at = next(n for n in range(at, len(found)) if found[n].start > line_end)
        elif word == "declare":
            at = next(n for n in range(at, len(found)) if found[n].text == "begin")
            yield Statement(start, body[start : found[at].start], is_declaration=True, can_be_preceded=False)
        else:
            last = _end(found, at)
            if word != "end":
                end = found[last].start if last < len(found) else len(body)
                yield Statement(start, body[start:end], can_be_preceded=word not in ("elsif", "when"))
            at = last + 1


def _end(found: list[Token], first: int) -> int:
    """Return the index of the token that ends the statement: `then`, `loop` or a semicolon."""
    stop = HEADS.get(found[first].text, ";")
    depth = cases = 0
    for at in range(first, len(found)):
        text = found[at].text
        depth += (text in "([") - (text in ")]")
        if depth == cases == 0 and text == stop:
            return at
        if found[first].text != "end":
            cases += (text == "case") - (text == "end" and cases > 0)
    return len(found)
