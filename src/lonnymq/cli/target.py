"""What `module:attribute` names: an App, a worker, a handler, or a function that makes one of them."""

import importlib
import inspect
import sys
import sysconfig
import traceback
from functools import partial, reduce
from pathlib import Path
from typing import Any

import typer

from lonnymq.errors import InvalidArgument
from lonnymq.tasks import App, PreparedTask, Task
from lonnymq.texts import MAX_LINE, cut, shown
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
        choices = _choices(module, module_name)
        hint = f"; did you mean {choices}?" if choices else ""
        raise typer.BadParameter(f"module {module_name!r} has no {attribute!r}{hint}") from None
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_failure(f"looking up {target!r}", error)) from error
    return _made(named, target)


def _suggestion(module: Any, name: str) -> str:
    """Return what could have been meant by a module alone."""
    if choices := _choices(module, name):
        return f"so write {choices}"
    return f"such as {name}:app; the module has neither an App, nor a Worker, nor a Handler"


def _choices(module: Any, name: str) -> str:
    """Return what of a module can be worked, as one would type it."""
    names = [one for one, value in vars(module).items() if isinstance(value, App | Worker | Handler)]
    return " or ".join(f"{name}:{one}" for one in names[:MOST_SUGGESTED])


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise typer.BadParameter(_absence(name)) from None
        raise typer.BadParameter(_failure(f"importing {name!r}", error)) from error
    # A module that ends the program when it is imported would seem to have worked everything.
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_failure(f"importing {name!r}", error)) from error


def _absence(name: str) -> str:
    """Return that there is no such module; its last part may be an attribute, with a dot for the colon."""
    parent, _, attribute = name.rpartition(".")
    if hasattr(sys.modules.get(parent), attribute):
        return f"there is no module {name!r}; did you mean {parent}:{attribute}?"
    return f"there is no module {name!r}, here or in Python's path"


def _failure(what: str, error: BaseException) -> str:
    """Return what went wrong in the user's own module, and where."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if Path(one.filename).is_relative_to(Path.cwd())]
        frame = (own or frames)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
    return f"{what} failed: {type(error).__name__}: {cut(str(error), MAX_LINE)} ({place})"


def _made(named: Any, target: str) -> Any:
    """Return what a worker can run; a function that can be called without arguments makes it."""
    if isinstance(named, App | Worker | Handler):
        return named
    for task in (named, getattr(named, "__self__", None)):
        if isinstance(task, Task | PreparedTask):
            raise typer.BadParameter(_task_refusal(task, target))
    if not callable(named) or inspect.isclass(named):
        raise typer.BadParameter(f"{target!r} must be {EXPECTED}, it is a {type(named).__name__}")
    if owner := _strange_owner(named):
        raise typer.BadParameter(f"{target!r} must be {EXPECTED}, of your own; this one is {owner}'s")
    if not _is_factory(named):
        try:
            return Handler(call=named)
        except InvalidArgument as error:
            raise typer.BadParameter(f"{target!r} must be {EXPECTED}: {error}") from None
    if inspect.iscoroutinefunction(named):
        raise typer.BadParameter(
            f"{target!r} must be {EXPECTED}; it is an async function that takes no message"
        )
    try:
        made = named()
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_failure(f"{target}()", error)) from error
    if isinstance(made, Task | PreparedTask):
        raise typer.BadParameter(_task_refusal(made, f"{target}()"))
    if isinstance(made, App | Worker | Handler):
        return made
    raise typer.BadParameter(
        f"{target}() must return an App, a Worker or a Handler, it returned {shown(made)}"
    )


def _strange_owner(function: Any) -> str:
    """Return whose function this is if it cannot be meant: json.dumps works no message, sys.exit ends us."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__module__", None) or type(getattr(function, "__self__", function)).__module__
    root = str(name).partition(".")[0]
    if root == "lonnymq":
        return root
    if root not in sys.stdlib_module_names:
        return ""
    # Somebody's own module may have the name of one of Python's.
    file = getattr(sys.modules.get(root), "__file__", None)
    is_pythons = file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib"))
    return "Python" if is_pythons else ""


def _is_factory(function: Any) -> bool:
    """Whether it needs no argument; a handler's message has no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return False
    return all(one.default is not one.empty or one.kind is one.VAR_KEYWORD for one in parameters)


def _task_refusal(task: "Task[..., Any, Any] | PreparedTask[..., Any, Any]", target: str) -> str:
    if isinstance(task, PreparedTask):
        task = task.task
    module = target.partition(":")[0]
    beside = [(module, name) for name, value in vars(sys.modules[module]).items() if value is task.app]
    location = beside[0] if beside else task.app.location()
    if location is None:
        return f"{target} is a task; run the App that it belongs to"
    app = ":".join(location)
    return f"{target} is a task of app {app}; run `lonnymq work {app}`"
