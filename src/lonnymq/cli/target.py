"""Load what `lonnymq work` is to run: `module:attribute` names an App, a Worker, a handler or a factory."""

import importlib
import inspect
import sys
import sysconfig
import traceback
from functools import partial, reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from lonnymq.errors import InvalidArgument, LonnyError
from lonnymq.tasks import App, PreparedTask, Task
from lonnymq.texts import MAX_LINE, short_repr, truncate
from lonnymq.worker import Handler, Worker

MAX_SUGGESTIONS = 3
EXPECTED = (
    "an App, a Worker, a Handler, a function that takes a message, or a function that returns one of these"
)


def load_target(target: str) -> Any:
    """Import the target; modules are searched for in the working directory too."""
    module_name, _, attribute = target.partition(":")
    if not module_name:
        raise typer.BadParameter(f"{target!r} must be module:attribute, for example shop.tasks:app")
    if module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise typer.BadParameter(f"{target!r} is a file; write {dotted}:{attribute or 'app'}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    module = _import_module(module_name)
    attribute = attribute or _only_app(module, module_name)
    try:
        value = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        candidates = _candidates(module, module_name)
        hint = f"; did you mean {candidates}?" if candidates else ""
        raise typer.BadParameter(f"module {module_name!r} has no attribute {attribute!r}{hint}") from None
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_user_error(f"looking up {target!r}", error)) from error
    return _resolve(value, target)


def _only_app(module: ModuleType, name: str) -> str:
    """Return the attribute of a target that names only a module: its only app."""
    apps = {id(value): one for one, value in vars(module).items() if isinstance(value, App)}
    if len(apps) == 1:
        return next(iter(apps.values()))
    if candidates := _candidates(module, name):
        raise typer.BadParameter(f"{name!r} must be module:attribute, for example {candidates}")
    raise typer.BadParameter(
        f"{name!r} must be module:attribute, for example {name}:app; the module has no App, Worker or Handler"
    )


def _candidates(module: Any, name: str) -> str:
    """Return targets in the module, as a user would type them."""
    names = [one for one, value in vars(module).items() if isinstance(value, App | Worker | Handler)]
    return " or ".join(f"{name}:{one}" for one in names[:MAX_SUGGESTIONS])


def _import_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise typer.BadParameter(_missing_module(name)) from None
        raise typer.BadParameter(_user_error(f"importing {name!r}", error)) from error
    # Otherwise a module that exits on import would look like a worker that has finished.
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_user_error(f"importing {name!r}", error)) from error


def _missing_module(name: str) -> str:
    """Return the error for a missing module; the user may have written a dot instead of the colon."""
    parent, _, attribute = name.rpartition(".")
    if hasattr(sys.modules.get(parent), attribute):
        return f"there is no module {name!r}; did you mean {parent}:{attribute}?"
    return f"there is no module {name!r} in the working directory or on Python's path"


def _user_error(action: str, error: BaseException) -> str:
    """Return the error that the user's code raised, and where."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if Path(one.filename).is_relative_to(Path.cwd())]
        frame = (own or frames)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
    return f"{action} failed: {type(error).__name__}: {truncate(str(error), MAX_LINE)} ({place})"


def _resolve(value: Any, target: str) -> Any:
    """Return what a worker can run; a function without required arguments is called to create it."""
    if isinstance(value, App | Worker | Handler):
        return value
    for task in (value, getattr(value, "__self__", None)):
        if isinstance(task, Task | PreparedTask):
            raise typer.BadParameter(_task_hint(task, target))
    if not callable(value) or inspect.isclass(value):
        raise typer.BadParameter(f"{target!r} must be {EXPECTED}; it is of type {type(value).__name__}")
    if owner := _library_of(value):
        raise typer.BadParameter(
            f"{target!r} must be {EXPECTED}, defined by your program; this one belongs to {owner}"
        )
    if not _is_factory(value):
        try:
            return Handler(call=value)
        except InvalidArgument as error:
            raise typer.BadParameter(f"{target!r} must be {EXPECTED}: {error}") from None
    if inspect.iscoroutinefunction(value):
        raise typer.BadParameter(
            f"{target!r} must be {EXPECTED}; it is an async function that takes no message"
        )
    try:
        made = value()
    except (Exception, SystemExit) as error:
        raise typer.BadParameter(_user_error(f"{target}()", error)) from error
    if isinstance(made, Task | PreparedTask):
        raise typer.BadParameter(_task_hint(made, f"{target}()"))
    if isinstance(made, App | Worker | Handler):
        return made
    raise typer.BadParameter(
        f"{target}() must return an App, a Worker or a Handler; it returned {short_repr(made)}"
    )


def _library_of(function: Any) -> str:
    """Return the library that a function belongs to if it is Python's or ours, which cannot be a handler."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__module__", None) or type(getattr(function, "__self__", function)).__module__
    root = str(name).partition(".")[0]
    if root == "lonnymq":
        return root
    if root not in sys.stdlib_module_names:
        return ""
    # The user's own module may have the same name as one of Python's.
    file = getattr(sys.modules.get(root), "__file__", None)
    is_stdlib = file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib"))
    return "Python" if is_stdlib else ""


def _is_factory(function: Any) -> bool:
    """Whether all parameters have defaults; a handler's message has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return False
    return all(one.default is not one.empty or one.kind is one.VAR_KEYWORD for one in parameters)


def _task_hint(task: "Task[..., Any] | PreparedTask[..., Any]", target: str) -> str:
    if isinstance(task, PreparedTask):
        task = task.task
    module = target.partition(":")[0]
    try:
        app = task.app
    except LonnyError as error:
        raise typer.BadParameter(f"{target} is a task: {error}") from None
    in_module = [(module, name) for name, value in vars(sys.modules[module]).items() if value is app]
    location = in_module[0] if in_module else app.location()
    if location is None:
        return f"{target} is a task; run the App it belongs to instead"
    name = ":".join(location)
    return f"{target} is a task of the App {name}; run `lonnymq work {name}` instead"
