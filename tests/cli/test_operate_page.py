"""The commands on the page for operators work."""

import shlex
from pathlib import Path

from lonnymq import Queue
from tests.cli.conftest import Run
from tests.examples.pages import ROOT, blocks

PAGE: Path = ROOT / "docs" / "howto" / "operate.md"


def test_every_command_on_the_operators_page_works(lonnymq: Run, queue: Queue) -> None:
    queue.channel("acme").set()
    queue.enqueue("acme", {"n": 1})
    lines = [line for block in blocks(PAGE, "sh") for line in block.code.splitlines()]
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line.rpartition("| ")[2])
        if words[0] == "lonnymq":
            given = '{"channel": "acme", "payload": 1}\n' if "|" in line else ""
            result = lonnymq(*words[1:], given=given)
            assert result.code == 0, (line, result)
