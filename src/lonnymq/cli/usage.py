"""Groups of commands: help that fits any width, and a hint if an option stands in the wrong place."""

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup


class Commands(TyperGroup):
    """Some commands under one name."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.help = _unwrapped(command.help)
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            option = getattr(error, "option_name", None)
            parameter = option and _parameter(self, option)
            if not option or not parameter:
                raise
            # Not what follows the option: it may be a password.
            value = () if parameter.is_flag else (parameter.metavar or parameter.name.upper(),)
            right = " ".join((ctx.command_path, *(_command(self, given) or ["COMMAND"]), option, *value))
            vars(error).update(message=f"{option} goes after the command: {right}", possibilities=None)
            raise


def _unwrapped(text: str) -> str:
    """Return help whose paragraphs are one line each: lines of the source do not fit every terminal."""
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", paragraph) for paragraph in text.strip().split("\n\n"))


def _parameter(command: Any, option: str) -> Any:
    """Return such an option of a command below this one; None if there is none."""
    if isinstance(command, TyperGroup):
        found = (_parameter(inner, option) for inner in command.commands.values())
        return next(filter(None, found), None)
    return next((parameter for parameter in command.params if option in parameter.opts), None)


def _command(group: Any, given: Sequence[str]) -> list[str]:
    """Return the names that lead to the command which was meant, as far as they were given."""
    for place, name in enumerate(given):
        if name in group.commands:
            inner = group.commands[name]
            return [name, *(_command(inner, given[place + 1 :]) if isinstance(inner, TyperGroup) else ())]
    return []
