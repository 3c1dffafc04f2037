"""Command-line options shared by all benchmarks."""

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def add_shared(parser: argparse.ArgumentParser, results: str, efforts: dict[str, str]) -> None:
    """Add the options for the server, the effort, and writing results/{results}.json."""
    parser.add_argument("--dsn", help="measure an existing server instead of starting one")
    parser.add_argument(
        "--server", choices=["system", "wheel"], default="system", help="binaries of the server to start"
    )
    parser.add_argument("--no-write", action="store_true", help=f"do not write results/{results}.json")
    parser.add_argument("--strict", action="store_true", help="fail if a bound is missed")
    parser.add_argument("--rounds", type=int, help="number of interleaved rounds, whose median counts")
    effort = parser.add_mutually_exclusive_group()
    for name, description in efforts.items():
        effort.add_argument(f"--{name}", dest="effort", action="store_const", const=name, help=description)
    parser.set_defaults(effort="standard")


def add_output(parser: argparse.ArgumentParser, results: str, rows: str | None = None) -> None:
    """Add the options for the output file and, if `rows` is given, for merging with an existing file."""
    if rows is not None:
        parser.add_argument(
            "--merge", action="store_true", help=f"keep the {rows} in the file that are not measured again"
        )
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS / f"{results}.json",
        metavar="PATH",
        help="write to this file instead",
    )
