"""Fixtures that run commands: most tests run them in this process, some in a process of their own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lonnymq.cli.app import app

SOURCE_DIR = Path(__file__).parents[2] / "src"
DEADLINE_S = 60.0
# Built once: building all commands takes longer than running most of them.
ROOT_COMMAND = typer.main.get_command(app)


@dataclass(frozen=True)
class CommandResult:
    """A command's exit code and output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def error_text(self) -> str:
        """stderr on one line, without the frames that Typer draws."""
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", self.err).split())


Run = Callable[..., CommandResult]
Start = Callable[..., "subprocess.Popen[str]"]


def environment(dsn: str, **more: str) -> dict[str, str]:
    """Return an environment without the developer's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LONNYMQ_"))}
    kept |= {"PYTHONPATH": str(SOURCE_DIR), "COLUMNS": "200", "LONNYMQ_DSN": dsn}
    return {**kept, **more}


@pytest.fixture
def lonnymq(dsn: str) -> Run:
    """Run a command in this process, on the test's queue."""
    return runner(dsn)


class Commands(CliRunner):
    """Runs commands in this process."""

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("typer.testing._get_command", lambda _: ROOT_COMMAND)
            return super().invoke(app, *arguments, **options)


def runner(dsn: str) -> Run:
    def lonnymq(*arguments: str, given: str | bytes | None = None, **more: str) -> CommandResult:
        env: Mapping[str, str | None] = {
            **{name: None for name in os.environ if name.startswith(("PG", "LONNYMQ_"))},
            "COLUMNS": "200",
            "LONNYMQ_DSN": dsn,
            **more,
        }
        result = Commands().invoke(arguments, input=given, env=env, prog_name="lonnymq")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return CommandResult(result.exit_code, result.stdout, result.stderr)

    return lonnymq


@pytest.fixture
def shell(dsn: str) -> Run:
    """Run a command in a process of its own, on the test's queue."""

    def shell(*arguments: str, given: str = "", cwd: Path | None = None, **more: str) -> CommandResult:
        completed = subprocess.run(
            [sys.executable, "-m", "lonnymq", *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            cwd=cwd,
            env=environment(dsn, **more),
        )
        return CommandResult(completed.returncode, completed.stdout, completed.stderr)

    return shell


@pytest.fixture
def start(dsn: str) -> Iterator[Start]:
    """Start a command that runs until the test stops it."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, cwd: Path | None = None, **more: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "lonnymq", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=environment(dsn, **more),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_S)
