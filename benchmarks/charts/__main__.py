"""Generates the charts, and the parts of pages that show them, from the JSON in benchmarks/results."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.charts import core, designs, peers, scale, simulation, spark
from benchmarks.charts.pages import Output, fill_page
from benchmarks.options import RESULTS

ROOT = RESULTS.parents[1]
# Each module has a FILE of results, the COMMAND that measures them, the PARTS it generates, and make().
GENERATORS: tuple[ModuleType, ...] = (core, spark, designs, peers, scale, simulation)
EXPLANATION = "docs/explanation"
PAGES = ("README.md", *(f"{EXPLANATION}/{name}.md" for name in ("benchmarks", "peers", "scale")))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.charts", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    chosen = parser.parse_args(arguments)
    changed = {path: text for path, text in all_files(RESULTS, ROOT).items() if not is_written(path, text)}
    for path, text in changed.items():
        print(f"{'would write' if chosen.check else 'writes'} {path.relative_to(ROOT)}")
        if not chosen.check:
            path.write_text(text, encoding="utf-8")
    return 1 if chosen.check and changed else 0


def all_files(results: Path, root: Path) -> dict[Path, str]:
    """Return the content of each generated file."""
    output = Output()
    for generator in GENERATORS:
        output |= run_generator(generator, results)
    files = {results / name: content for name, content in output.charts.items()}
    for name in PAGES:
        page = root / name
        files[page] = fill_page(page, page.read_text(encoding="utf-8"), output, results)
    return files


def run_generator(generator: ModuleType, results: Path) -> Output:
    path = results / generator.FILE
    if not path.exists():
        missing = f"*No run on an idle machine has been recorded yet; run `{generator.COMMAND}`.*"
        return Output(parts=dict.fromkeys((*generator.PARTS, f"{path.stem}-measured"), missing))
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    output: Output = generator.make(document)
    return output | Output(parts={f"{path.stem}-measured": measured_note(document, generator.COMMAND)})


def measured_note(document: dict[str, Any], command: str) -> str:
    """Return a sentence about when, where and how a run measured, which precedes its figures."""
    if "machine" not in document:
        return f"`{command}`; seed {document['seed']}, with the same result on every machine."
    machine, versions, settings = document["machine"], document["versions"], document["settings"]
    busy = ""
    if machine["load"] > machine["cores"]:
        busy = f" **The machine was busy with other work: load {machine['load']:.1f}.**"
    return (
        f"`{command}`, {days(document)}, {settings['effort']} run, {machine['cores']} cores "
        f"({machine['cpu']}), PostgreSQL {versions['postgresql'].split()[0]}, Python {versions['python']}, "
        f"fsync {settings['fsync']}, contents of {settings['payload_bytes']} bytes.{busy} {document['note']}"
    )


def days(document: dict[str, Any]) -> str:
    """Return the day of the run; for merged results, the first and the last day."""
    found = sorted({date[:10] for date in dates(document)})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def dates(part: object) -> Iterator[str]:
    match part:
        case {"date": str(date), **rest}:
            yield date
            yield from dates(list(rest.values()))
        case dict():
            yield from dates(list(part.values()))
        case list():
            for one in part:
                yield from dates(one)


def is_written(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
