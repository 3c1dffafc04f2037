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
            if option is None or not _is_known(self, option):
                raise
            right = " ".join((ctx.command_path, *(_command(self, given) or ["COMMAND"]), option))
            # Not what follows the option: it may be a password.
            vars(error).update(message=f"{option} goes after the command: {right}", possibilities=None)
            raise


def _unwrapped(text: str) -> str:
    """Return help whose paragraphs are one line each: lines of the source do not fit every terminal."""
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", paragraph) for paragraph in text.strip().split("\n\n"))


def _is_known(command: Any, option: str) -> bool:
    """Whether a command below this one has such an option."""
    if isinstance(command, TyperGroup):
        return any(_is_known(inner, option) for inner in command.commands.values())
    return any(option in parameter.opts for parameter in command.params)


def _command(group: Any, given: Sequence[str]) -> list[str]:
    """Return the names that lead to the command which was meant, as far as they were given."""
    for place, name in enumerate(given):
        if name in group.commands:
            inner = group.commands[name]
            return [name, *(_command(inner, given[place + 1 :]) if isinstance(inner, TyperGroup) else ())]
    return []
