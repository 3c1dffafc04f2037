"""The options that all benchmarks share."""

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def add_shared(parser: argparse.ArgumentParser, results: str, efforts: dict[str, str]) -> None:
    """Add what server to measure, how long, and whether to write results/{results}.json."""
    parser.add_argument("--dsn", help="measure an existing server instead of starting one")
    parser.add_argument(
        "--server", choices=["system", "wheel"], default="system", help="whose binaries to start"
    )
    parser.add_argument("--no-write", action="store_true", help=f"leave results/{results}.json alone")
    parser.add_argument("--strict", action="store_true", help="fail if a figure is missed")
    parser.add_argument("--rounds", type=int, help="interleaved rounds of which the median counts")
    effort = parser.add_mutually_exclusive_group()
    for name, what in efforts.items():
        effort.add_argument(f"--{name}", dest="effort", action="store_const", const=name, help=what)
    parser.set_defaults(effort="standard")


def add_output(parser: argparse.ArgumentParser, results: str, rows: str | None = None) -> None:
    """Add where to write, and, where that can be done, whether to keep those rows that are not measured."""
    if rows is not None:
        parser.add_argument(
            "--merge", action="store_true", help=f"keep the {rows} of the file that are not measured again"
        )
    parser.add_argument(
        "--output", type=Path, default=RESULTS / f"{results}.json", metavar="PATH", help="write there instead"
    )
