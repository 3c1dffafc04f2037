"""What `module:attribute` names: an App, a worker, a handler, or a function that makes one of them."""

import importlib
import inspect
import sys
import traceback
from functools import reduce
from pathlib import Path
from typing import Any

import typer

from lonnymq.tasks import App
from lonnymq.worker import Handler, Worker

MOST_SUGGESTED = 3
EXPECTED = "an App, a Worker, a Handler, a function of a message, or a function that returns one of these"


def found(target: str) -> Any:
    """Import what is named; modules are looked for in the working directory too."""
    module_name, _, attribute = target.partition(":")
    if not module_name:
        raise typer.BadParameter(f"{target!r} must be module:attribute, such as shop.tasks:app")
    if module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise typer.BadParameter(f"{target!r} is a file: write {dotted}:{attribute or 'app'}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    module = _imported(module_name)
    if not attribute:
        raise typer.BadParameter(f"{target!r} must be module:attribute, {_suggestion(module, module_name)}")
    try:
        named = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        raise typer.BadParameter(f"module {module_name!r} has no {attribute!r}") from None
    return _made(named, target)


def _suggestion(module: Any, name: str) -> str:
    """Return what could have been meant by a module alone."""
    names = [one for one, value in vars(module).items() if isinstance(value, App | Worker | Handler)]
    if not names:
        return f"such as {name}:app; the module has neither an App, nor a Worker, nor a Handler"
    return f"so write {' or '.join(f'{name}:{one}' for one in names[:MOST_SUGGESTED])}"


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise typer.BadParameter(f"there is no module {name!r}, here or in Python's path") from None
        raise typer.BadParameter(_failure(name, error)) from error
    except Exception as error:
        raise typer.BadParameter(_failure(name, error)) from error


def _failure(name: str, error: Exception) -> str:
    """Return what went wrong in the user's own module, and where."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if Path(one.filename).is_relative_to(Path.cwd())]
        frame = (own or frames)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
    return f"importing {name!r} failed: {type(error).__name__}: {error} ({place})"


def _made(named: Any, target: str) -> Any:
    """Call it, if it is a function without arguments."""
    if isinstance(named, App | Worker | Handler):
        return named
    if not callable(named) or inspect.isclass(named):
        raise typer.BadParameter(f"{target!r} must be {EXPECTED}, it is a {type(named).__name__}")
    if inspect.signature(named).parameters:
        return named
    made = named()
    if isinstance(made, App | Worker | Handler):
        return made
    raise typer.BadParameter(f"{target}() must return an App, a Worker or a Handler, it returned {made!r}")
