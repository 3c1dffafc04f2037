"""Compares our conversion of arguments with msgspec's and pydantic's: python -m benchmarks.arguments.

Libraries that are not installed are left out: pip install msgspec pydantic. Times are CPU times, of the
fastest of several runs. The decision that follows is docs/adr/0024-convert-arguments-ourselves.md.
"""

import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from importlib import metadata, util
from typing import Any, get_type_hints
from uuid import UUID

from lonnymq.tasks.arguments import Arguments

CALLS, RUNS = 2_000, 7
PACKAGES = {
    "msgspec": ("msgspec",),
    "pydantic": ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"),
}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: int
    customer: str
    lines: list[Line]


@dataclass
class Paid:
    order: int
    amount: str


@dataclass
class Shipped:
    order: int
    parcel: str
    weight: float


@dataclass
class Special(Line):
    discount: int = 0


@dataclass
class Tree:
    children: "list[Tree]"


def resize(video: int, width: int = 640, title: str = "") -> None: ...
def place(order: Order) -> None: ...
def charge(at: datetime, amount: Decimal, order: UUID, colour: Colour) -> None: ...
def apply(events: list[Paid | Shipped]) -> None: ...


NOW, ID = datetime(2026, 1, 15, 12, tzinfo=UTC), UUID("12345678-1234-5678-1234-567812345678")
LINES = [Line("lamp", 2), Line("bulb", 10)]
SIGNATURES: Mapping[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "ints and a str": (resize, {"video": 7, "width": 1280, "title": "a lamp"}),
    "nested dataclasses": (place, {"order": Order(7, "acme", LINES)}),
    "datetime, Decimal, UUID, Enum": (
        charge,
        {"at": NOW, "amount": Decimal("9.90"), "order": ID, "colour": Colour.RED},
    ),
    "list of a union of dataclasses": (apply, {"events": [Paid(1, "9.90"), Shipped(1, "x", 0.5)] * 5}),
}
MISTAKES: Mapping[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "wrong type": (resize, {"video": "seven"}),
    "unknown name": (resize, {"vido": 7}),
    "missing argument": (resize, {"width": 640}),
    "wrong type inside": (place, {"order": Order(7, "acme", [Line("lamp"), Line("bulb", "two")])}),  # type: ignore[arg-type]
    "float for Decimal": (charge, {"at": NOW, "amount": 9.9, "order": ID, "colour": Colour.RED}),
    "no member of the union": (apply, {"events": [Line("lamp")]}),
}
# An annotation, and a value that is to come back the same, or be refused.
VALUES: Mapping[str, tuple[Any, Any]] = {
    "a union of two dataclasses": (Paid | Shipped, Paid(1, "9.90")),
    "a dataclass that contains itself": (Tree, Tree([Tree([])])),
    "dict[int, str]": (dict[int, str], {1: "a"}),
    "set[UUID]": (set[UUID], {ID}),
    "tuple[int, str]": (tuple[int, str], (1, "a")),
    "timedelta": (timedelta, timedelta(days=1, seconds=0.5)),
    "bytes": (bytes, b"\x00\xff"),
    "datetime | str, given a date as text": (datetime | str, NOW.isoformat()),
    "Decimal | float, given a float": (Decimal | float, 0.5),
    "a dataclass, given a subclass": (Line, Special("lamp", 1, 5)),
    "no annotation, given a datetime": (Any, NOW),
    "float, given infinity": (float, float("inf")),
}
Pair = tuple[Callable[[dict[str, Any]], str], Callable[[str], object]]


def ours(function: Callable[..., None]) -> Pair:
    """Return how a producer writes a call, checked, and how a worker reads it."""
    arguments = Arguments(function, function.__name__)
    return (
        lambda given: json.dumps(arguments.to_json((), given)),
        lambda text: dict(arguments.from_json(json.loads(text)).arguments),
    )


def with_msgspec(function: Callable[..., None]) -> Pair:
    msgspec: Any = __import__("msgspec")
    signature, kind = inspect.signature(function), msgspec.defstruct("Call", _fields(function), kw_only=True)
    decoder = msgspec.json.Decoder(kind)

    def write(given: dict[str, Any]) -> str:
        text = msgspec.json.encode(signature.bind(**given).arguments)
        decoder.decode(text)  # It checks types only when it reads.
        return str(text, "utf-8")

    return write, lambda text: msgspec.structs.asdict(decoder.decode(text))


def with_pydantic(function: Callable[..., None]) -> Pair:
    pydantic: Any = __import__("pydantic")
    fields = {
        name: (kind, *default) if default else (kind, ...) for name, kind, *default in _fields(function)
    }
    model = pydantic.create_model(
        "Call", __config__=pydantic.ConfigDict(extra="forbid", strict=True), **fields
    )
    return (
        lambda given: model.model_validate(given).model_dump_json(exclude_unset=True),
        lambda text: dict(model.model_validate_json(text)),
    )


LIBRARIES: dict[str, Callable[[Callable[..., None]], Pair]] = {"ours": ours}
LIBRARIES |= {"msgspec": with_msgspec} if util.find_spec("msgspec") else {}
LIBRARIES |= {"pydantic": with_pydantic} if util.find_spec("pydantic") else {}


def main() -> None:
    row("", *LIBRARIES)
    for name, (function, given) in SIGNATURES.items():
        row(f"{name}: write and check", *(speed(make, function, given, 0) for make in LIBRARIES.values()))
        row(f"{name}: read", *(speed(make, function, given, 1) for make in LIBRARIES.values()))
    row("import, on top of lonnymq.tasks", *map(import_time, LIBRARIES))
    row("size on disk", *map(size, LIBRARIES))
    for name, (annotation, value) in VALUES.items():
        row(name, *(fate(make, annotation, value) for make in LIBRARIES.values()))
    for name, (function, given) in MISTAKES.items():
        print(f"\n{name}")
        for library, make in LIBRARIES.items():
            print(f"  {library}: {error_of(make, function, given)}")


def row(*cells: str) -> None:
    print(f"| {cells[0]:45} | " + " | ".join(f"{cell:>9}" for cell in cells[1:]) + " |", flush=True)


def speed(
    make: Callable[..., Pair], function: Callable[..., None], given: dict[str, Any], direction: int
) -> str:
    try:
        write, read = make(function)
    except Exception:  # noqa: BLE001 - whatever the library raises
        return "refused"
    text = write(given)
    call: Callable[[], object] = (lambda: read(text)) if direction else (lambda: write(given))
    best_s = min(cpu_time(call) for _ in range(RUNS))
    return f"{best_s / CALLS * 1e6:.1f} µs"


def cpu_time(call: Callable[[], object]) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        call()
    return time.process_time() - began


def import_time(library: str) -> str:
    if library == "ours":
        return "0 ms"
    code = f"import lonnymq.tasks, time; t = time.process_time(); import {library}\n"
    if library == "pydantic":
        code += "pydantic.BaseModel\n"
    code += "print(time.process_time() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(RUNS)]
    return f"{min(runs) * 1e3:.0f} ms"


def size(library: str) -> str:
    names = [name for name in PACKAGES.get(library, ()) if util.find_spec(name)]
    files = [file for name in names for file in metadata.files(name) or ()]
    total = sum(path.stat().st_size for file in files if (path := file.locate()).is_file())  # type: ignore[attr-defined]
    return f"{total / 2**20:.1f} MiB"


def fate(make: Callable[..., Pair], annotation: Any, value: Any) -> str:
    """Return what becomes of a value on its way to a worker."""

    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": annotation}
    try:
        write, read = make(function)
        text = write({"value": value})
    except Exception:  # noqa: BLE001 - whatever the library raises
        return "refused"
    try:
        returned: Any = read(text)
    except Exception:  # noqa: BLE001 - accepted when it was enqueued
        return "LOST"
    same = returned["value"] == value and type(returned["value"]) is type(value)
    return "same" if same else "CHANGED"


def error_of(make: Callable[..., Pair], function: Callable[..., None], given: dict[str, Any]) -> str:
    try:
        write, _ = make(function)
        return f"accepted: {write(given)}"
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        return " / ".join(str(error).splitlines())


def _fields(function: Callable[..., None]) -> list[tuple[Any, ...]]:
    hints = get_type_hints(function)
    return [
        (name, hints[name], *(() if one.default is one.empty else (one.default,)))
        for name, one in inspect.signature(function).parameters.items()
    ]


if __name__ == "__main__":
    main()
