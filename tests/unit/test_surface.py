"""The public names of the package, and that both clients have the same methods."""

import inspect
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import lonnymq
from lonnymq import Queue
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.model.acknowledge import ACTIONS
from tools import unasync

CLIENT_PAIRS = [
    (lonnymq.AsyncQueue, lonnymq.Queue),
    (lonnymq.AsyncMessage, lonnymq.Message),
    (lonnymq.AsyncChannel, lonnymq.Channel),
    (lonnymq.AsyncDeadLetters, lonnymq.DeadLetters),
    (lonnymq.AsyncHistory, lonnymq.History),
    (lonnymq.AsyncCrons, lonnymq.Crons),
]


def public(kind: type[Any]) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("aio", "sync"), CLIENT_PAIRS, ids=lambda kind: kind.__name__)
def test_both_clients_have_the_same_methods(aio: type[Any], sync: type[Any]) -> None:
    assert public(aio).keys() == public(sync).keys()
    for name, value in public(aio).items():
        if inspect.isfunction(value):
            blocking = inspect.signature(getattr(sync, name))
            assert list(inspect.signature(value).parameters) == list(blocking.parameters)
            assert not inspect.iscoroutinefunction(getattr(sync, name))


def test_every_public_name_exists() -> None:
    assert [name for name in lonnymq.__all__ if not hasattr(lonnymq, name)] == []
    assert len(set(lonnymq.__all__)) == len(lonnymq.__all__)


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Kafka'"):
        _ = lonnymq.Kafka


def test_importing_the_package_loads_no_embedded_server() -> None:
    code = "import sys, lonnymq; print('lonnymq.embedded' in sys.modules, callable(lonnymq.embedded))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False True\n"


def test_outcomes_compare_equal_to_strings() -> None:
    for name in lonnymq.__all__:
        kind = getattr(lonnymq, name)
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            assert all(member == member.value == str(member) for member in kind)


def test_every_outcome_of_an_acknowledgement_is_public() -> None:
    kinds = {type(action.done).__name__ for action in ACTIONS} | {"HeartbeatOutcome"}
    assert kinds <= set(lonnymq.__all__)


def test_every_public_method_has_a_docstring() -> None:
    for pair in CLIENT_PAIRS:
        for kind in pair:
            for name, value in public(kind).items():
                if inspect.isfunction(value):
                    assert inspect.getdoc(value), f"{kind.__name__}.{name} has no docstring"


def test_other_packages_use_only_the_documented_part_of_the_caller() -> None:
    documented = set(re.findall(r"`(\w+)", str(AsyncCaller.__doc__))) - {"queue", "lonnymq"}
    package = Path(lonnymq.__file__).parent
    found = {
        name
        for path in package.rglob("*.py")
        if not path.is_relative_to(package / "client")
        for name in re.findall(r"caller\.(\w+)", path.read_text(encoding="utf-8"))
    }
    assert found <= documented
    assert documented <= set(dir(AsyncCaller)) | vars(Queue("").caller).keys()


@pytest.mark.parametrize("package", unasync.PACKAGES, ids=lambda package: package.name)
def test_every_file_of_the_blocking_client_has_its_source(package: Path) -> None:
    sources = {path.name for path in (package / "aio").glob("*.py")}
    assert sources
    assert {path.name for path in (package / "sync").glob("*.py")} == sources
