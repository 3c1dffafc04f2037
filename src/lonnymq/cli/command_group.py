"""Command groups whose help fits any terminal, and which explain misplaced options."""

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.help = _unwrap(command.help)
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            option = getattr(error, "option_name", None)
            parameter = option and _find_parameter(self, option)
            if not option or not parameter:
                raise
            # Do not repeat the option's value: it may hold a password.
            value = () if parameter.is_flag else (parameter.metavar or parameter.name.upper(),)
            corrected = " ".join(
                (ctx.command_path, *(_command_path(self, given) or ["COMMAND"]), option, *value)
            )
            vars(error).update(message=f"{option} goes after the command: {corrected}", possibilities=None)
            raise


def _unwrap(text: str) -> str:
    """Join the lines of each paragraph, so that the terminal's width decides where they break."""
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", paragraph) for paragraph in text.strip().split("\n\n"))


def _find_parameter(command: Any, option: str) -> Any:
    """Return the option of a command below this one, or None."""
    if isinstance(command, TyperGroup):
        found = (_find_parameter(inner, option) for inner in command.commands.values())
        return next(filter(None, found), None)
    return next((parameter for parameter in command.params if option in parameter.opts), None)


def _command_path(group: Any, given: Sequence[str]) -> list[str]:
    """Return the names of the groups and the command among the arguments."""
    for place, name in enumerate(given):
        if name in group.commands:
            inner = group.commands[name]
            return [
                name,
                *(_command_path(inner, given[place + 1 :]) if isinstance(inner, TyperGroup) else ()),
            ]
    return []
