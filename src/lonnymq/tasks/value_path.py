"""Where a value stands among the arguments of a call, and what is known about it already."""

from collections.abc import Callable
from typing import Any, Protocol

from lonnymq.errors import InvalidArgument, invalid
from lonnymq.texts import line, shown

# Of a path deeper than this, only the ends are named.
MAX_PARTS = 10
# Converting these is as cheap as remembering what came of it.
ATOMS = (str, int, float, type(None))
Convert = Callable[["ValuePath", Any], Any]
Memo = dict[tuple[int, str, int], tuple[Any, Any]]


class Expecting(Protocol):
    """What can say which values it takes."""

    @property
    def expected(self) -> str: ...


class InvalidValue(Exception):
    """A value that does not fit here.

    A union asks its members one after the other, and a long list of unions asks as often for each item: the
    text is only made of the refusal that is shown in the end.
    """

    def __init__(
        self, path: "ValuePath", value: Any, expected: "str | Expecting | Callable[[], str]"
    ) -> None:
        self._path = path
        self._value = value
        self._expected = expected

    def to_error(self) -> InvalidArgument:
        """Return what the user is told."""
        expected = self._expected
        if callable(expected):
            expected = expected()
        elif not isinstance(expected, str):
            expected = expected.expected
        return invalid(str(self._path), self._value, expected)


class ValuePath:
    """Its name is only made if the value is refused: keys may be long, and the way to them as well."""

    __slots__ = ("_above", "_is_key", "_memo", "_part")

    def __init__(self, part: object, above: "ValuePath | None" = None, *, is_key: bool = False) -> None:
        self._part = part
        self._above = above
        self._is_key = is_key
        # What was found in here, if this is inside a union.
        self._memo: Memo | None = None if above is None else above._memo

    def at(self, part: int | str) -> "ValuePath":
        """Return the path of an item, a field or an entry."""
        return ValuePath(part, self)

    def key(self, key: object) -> "ValuePath":
        """Return the path of a key itself."""
        return ValuePath(key, self, is_key=True)

    def in_union(self) -> "ValuePath":
        """Return the same path, for a value that may be converted several times."""
        if self._memo is not None:
            return self
        path = ValuePath(self._part, self._above, is_key=self._is_key)
        path._memo = {}
        return path

    def refuse(self, value: Any, expected: str | Expecting | Callable[[], str]) -> InvalidValue:
        return InvalidValue(self, value, expected)

    def convert_once(self, converter: object, convert: Convert, value: Any) -> Any:
        """Convert a value here; inside a union, return or raise what came of that before.

        Members of a union may have fields in common, and these may be unions again. If each member converted
        them for itself, the work would double with each level.
        """
        if self._memo is None or isinstance(value, ATOMS):
            return convert(self, value)
        # The value is kept, so that no other one gets its id meanwhile.
        key = (id(converter), convert.__name__, id(value))
        if key not in self._memo:
            try:
                self._memo[key] = value, convert(self, value)
            except InvalidValue as error:
                self._memo[key] = value, error
        found = self._memo[key][1]
        if isinstance(found, InvalidValue):
            raise found.with_traceback(None)
        return found

    def __str__(self) -> str:
        way: list[ValuePath] = []
        path: ValuePath | None = self
        while path is not None:
            way.append(path)
            path = path._above
        way.reverse()
        if len(way) <= MAX_PARTS:
            return "".join(one._shown() for one in way)
        half = MAX_PARTS // 2
        begin, end = ("".join(one._shown() for one in part) for part in (way[:half], way[-half:]))
        return f"{begin} ... {len(way) - 2 * half} levels ... {end}"

    def _shown(self) -> str:
        if self._is_key:
            return f", key {shown(self._part, 60)},"
        if isinstance(self._part, int):
            return f"[{self._part}]"
        name = line(str(self._part), 60)
        return name if self._above is None else f".{name}"
