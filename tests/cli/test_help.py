"""Help pages, version and completion."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

import lonnymq as package
from lonnymq.cli.app import app
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import CommandResult, environment, runner
from tests.examples.pages import with_policy

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command and group."""
    yield path
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


# Not those that other tests run: a command that is used without its group forgets the group's settings.
ROOT_COMMAND = typer.main.get_command(app)
ALL = list(commands(ROOT_COMMAND))
# Commands with an option for each field of a policy.
POLICY_COMMANDS = (("channel", "set"), ("channel", "default"))


def command(path: tuple[str, ...]) -> Any:
    found: Any = ROOT_COMMAND
    for name in path:
        found = found.commands[name]
    return found


def is_group(path: tuple[str, ...]) -> bool:
    return isinstance(command(path), TyperGroup)


def run(*arguments: str, **more: str) -> CommandResult:
    return runner("")(*arguments, **more)


def test_all_documented_commands_exist() -> None:
    documented = """
        up install migrate sql doctor status channels enqueue load peek top work check repair
        channel-set channel-pause channel-resume channel-delete channel-explain
        message-show message-cancel dead-list dead-show dead-redrive dead-purge
        cron-list cron-pause cron-resume history-prune history-prepare
    """
    assert set(documented.split()) <= {"-".join(path) for path in ALL}


@pytest.mark.parametrize("path", [path for path in ALL if not is_group(path)], ids=" ".join)
def test_every_command_accepts_its_own_defaults(path: tuple[str, ...]) -> None:
    """A default is converted when the command is called, by a parser that may refuse it."""
    found = command(path)
    given = []
    for parameter in (one for one in found.params if one.required):
        choices = getattr(parameter.type_descriptor.annotation, "_value2member_map_", {"1": None})
        given += [one for one in parameter.opts[-1:] if one.startswith("-")] + [next(iter(choices))]
    values = found.make_context(path[-1], given).params
    if "window" in values:
        assert values["window"] == timedelta(minutes=1)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_and_option_is_in_help_and_reference(path: tuple[str, ...]) -> None:
    for option in ("--help", "-h"):
        page = run(*path, option)
        assert page.code == 0
        assert page.err == ""
        assert f"Usage: {' '.join(('lonnymq', *path))}" in page.out
    for parameter in command(path).params:
        assert getattr(parameter, "help", None), f"{path}: {parameter.name} has no help"
    text = REFERENCE.read_text(encoding="utf-8")
    assert f"lonnymq {' '.join(path)}".strip() in text
    if path:
        for parameter in command(path).params:
            name = max(parameter.opts, key=len)
            # Some options of these commands are the fields of a policy, with dashes.
            field = f"`{name.removeprefix('--').replace('-', '_')}`" if path in POLICY_COMMANDS else name
            is_documented = name in text or field in with_policy(text)
            assert not name.startswith("--") or is_documented, f"{path}: {name} is not in the reference"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_fits_the_width_of_the_terminal(path: tuple[str, ...]) -> None:
    for columns in (80, 120):
        page = run(*path, "--help", COLUMNS=str(columns)).out
        assert max(map(len, page.splitlines())) <= columns
        prose = page.partition("Usage: ")[2].partition("╭")[0].splitlines()[1:]
        for line, following in pairwise(map(str.strip, prose)):
            # A line ends only where the next word does not fit.
            assert not line or not following or len(line) + 1 + len(following.split()[0]) > columns - 2, page


@pytest.mark.parametrize(
    ("arguments", "corrected"),
    [
        (["--dsn", "postgresql://me:s3cret@db/x", "status"], "lonnymq status --dsn DSN"),
        (["--dsn=postgresql://me:s3cret@db/x", "channel", "set", "acme"], "lonnymq channel set --dsn DSN"),
        (["channel", "--schema", "s3cret", "set", "acme"], "lonnymq channel set --schema SCHEMA"),
        (["--json"], "lonnymq COMMAND --json"),
    ],
)
def test_a_misplaced_option_is_refused_with_the_right_order(arguments: list[str], corrected: str) -> None:
    result = run(*arguments)
    assert result.code == CommandExit.USAGE
    assert result.error_text.endswith(f"goes after the command: {corrected}")
    assert "s3cret" not in result.err


def test_the_help_of_work_shows_the_workers_defaults() -> None:
    settings = package.WorkerSettings()
    shown = {
        "concurrency": f"(default {settings.concurrency})",
        "processes": f"(default {settings.processes})",
        "lease_s": f"(default {settings.lease_s:g})",
        "shutdown_s": f"(default {settings.shutdown_s:g})",
        "max_bytes": f"(default {settings.max_bytes // 2**20} MiB)",
    }
    helps = {parameter.name: parameter.help for parameter in command(("work",)).params}
    assert {name: words in helps[name] for name, words in shown.items()} == dict.fromkeys(shown, True)


@pytest.mark.parametrize("path", [("grant",), ("pipeline", "analyse"), ("pipeline", "report")], ids=" ".join)
def test_help_shows_defaults_as_users_type_them(path: tuple[str, ...]) -> None:
    page = run(*path, "--help", COLUMNS="80").out
    assert "0:01:00" not in page
    assert ("(default 1m)" in page) == ("--window" in page)
    assert "rea " not in page


def test_an_unknown_option_is_refused() -> None:
    assert "No such option: --nonsense" in run("--nonsense", "status").error_text


def test_every_command_that_prints_data_can_print_json() -> None:
    without_json = {"up", "sql", "grant", "revoke", "work", "exporter", "serve"} | {
        "pause",
        "resume",
        "delete",
        "set",
    }
    for path in ALL:
        is_group = isinstance(command(path), TyperGroup)
        options = {option for parameter in command(path).params for option in parameter.opts}
        assert is_group or path[-1] in without_json or "--json" in options, path


def test_every_exit_code_is_in_the_reference() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [code for code in CommandExit if f"| {code.value} |" not in text] == []


def test_without_a_command_the_help_page_is_shown() -> None:
    assert "Usage: lonnymq" in run().out + run().err


def test_a_mistyped_command_gets_a_suggestion() -> None:
    result = run("statsu")
    assert result.code == CommandExit.USAGE
    assert "Did you mean 'status'" in result.error_text


def shell(*arguments: str, **more: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", "import sys; from lonnymq.cli import main; sys.exit(main())", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment("", **more),
        timeout=60,
    )
    return answer.stdout


def test_a_shell_completes_commands() -> None:
    script = shell("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "complete -o default -F _lonnymq_completion lonnymq" in script
    found = shell(_LONNYMQ_COMPLETE="complete_bash", COMP_WORDS="lonnymq chan", COMP_CWORD="1")
    assert found.split() == ["channels", "channel"]


def test_script_and_module_print_the_same_version() -> None:
    by_module = subprocess.run(
        [sys.executable, "-m", "lonnymq", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(""),
        timeout=60,
    )
    assert by_module.stdout == shell("--version") == f"lonnymq {package.__version__}\n"


def test_without_typer_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['typer'] = None; from lonnymq.cli import main; sys.exit(main(['status']))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment(""),
        timeout=60,
    )
    assert answer.returncode == 2
    assert answer.stderr == (
        'lonnymq: the command line needs typer: install lonnymq with the extra "cli";'
        ' in a checkout: pip install ".[cli]"\n'
    )
