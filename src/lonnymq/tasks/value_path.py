"""The path of a value within the arguments of a call, such as `resize: sizes[2].width`."""

from collections.abc import Callable
from typing import Any, Protocol

from lonnymq.errors import InvalidArgument, invalid
from lonnymq.texts import one_line, short_repr

# Of a longer path, only the first and the last parts are shown.
MAX_PARTS = 10
# Converting these is as cheap as looking up an earlier result.
ATOMS = (str, int, float, type(None))
Convert = Callable[["ValuePath", Any], Any]
# By the converter, the direction and the value: the value, to keep it alive, and the result or the error.
Results = dict[tuple[int, str, int], tuple[Any, Any]]


class HasExpected(Protocol):
    """Something, such as a converter, that can describe which values it accepts."""

    @property
    def expected(self) -> str: ...


class InvalidValue(Exception):
    """A value that cannot be converted.

    The text is only formatted by `to_error()`: a union tries its members one after another, and discards most
    of these errors.
    """

    def __init__(
        self, path: "ValuePath", value: Any, expected: "str | HasExpected | Callable[[], str]"
    ) -> None:
        self._path = path
        self._value = value
        self._expected = expected

    def to_error(self) -> InvalidArgument:
        """Return the error for the user."""
        expected = self._expected
        if callable(expected):
            expected = expected()
        elif not isinstance(expected, str):
            expected = expected.expected
        return invalid(str(self._path), self._value, expected)


class ValuePath:
    """Formatted only for an error, because keys and paths may be long."""

    __slots__ = ("_is_key", "_parent", "_part", "_results")

    def __init__(self, part: object, parent: "ValuePath | None" = None, *, is_key: bool = False) -> None:
        self._part = part
        self._parent = parent
        self._is_key = is_key
        # Earlier results of conversions within the same union, if this path is inside one.
        self._results: Results | None = None if parent is None else parent._results

    def at(self, part: int | str) -> "ValuePath":
        """Return the path of an item, a field or an entry."""
        return ValuePath(part, self)

    def key(self, key: object) -> "ValuePath":
        """Return the path of a key itself."""
        return ValuePath(key, self, is_key=True)

    def in_union(self) -> "ValuePath":
        """Return the same path, for a value that several members of a union may convert."""
        if self._results is not None:
            return self
        path = ValuePath(self._part, self._parent, is_key=self._is_key)
        path._results = {}
        return path

    def invalid(self, value: Any, expected: str | HasExpected | Callable[[], str]) -> InvalidValue:
        return InvalidValue(self, value, expected)

    def convert_once(self, converter: object, convert: Convert, value: Any) -> Any:
        """Convert the value; inside a union, return the earlier result or raise the earlier error.

        Members of a union may share fields, which may be unions too. If each member converted them by itself,
        the work would double with each level.
        """
        if self._results is None or isinstance(value, ATOMS):
            return convert(self, value)
        # The value is kept alive, so that no other one gets its id.
        key = (id(converter), convert.__name__, id(value))
        if key not in self._results:
            try:
                self._results[key] = value, convert(self, value)
            except InvalidValue as error:
                self._results[key] = value, error
        result = self._results[key][1]
        if isinstance(result, InvalidValue):
            raise result.with_traceback(None)
        return result

    def __str__(self) -> str:
        parts: list[ValuePath] = []
        path: ValuePath | None = self
        while path is not None:
            parts.append(path)
            path = path._parent
        parts.reverse()
        if len(parts) <= MAX_PARTS:
            return "".join(one._format_part() for one in parts)
        half = MAX_PARTS // 2
        begin, end = ("".join(one._format_part() for one in some) for some in (parts[:half], parts[-half:]))
        return f"{begin} ... {len(parts) - 2 * half} levels ... {end}"

    def _format_part(self) -> str:
        if self._is_key:
            return f", key {short_repr(self._part, 60)},"
        if isinstance(self._part, int):
            return f"[{self._part}]"
        name = one_line(str(self._part), 60)
        return name if self._parent is None else f".{name}"
