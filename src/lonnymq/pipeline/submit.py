"""The same steps for spark-submit: `spark-submit "$(python -m lonnymq.pipeline.submit --where)" archive ...`.

The session, and with it the cluster, is the one that spark-submit made.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

from lonnymq.errors import LonnyError
from lonnymq.pipeline import steps
from lonnymq.pipeline.session import session

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.where:
        print(os.path.abspath(__file__))
        return 0
    if options.step is None:
        parser.error("say which step: generate, ingest, archive, analyse or report")
    try:
        print(options.run(options))
    except LonnyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def seconds(text: str) -> int:
    """A duration such as 90s, 5m, 2h or 30d, in seconds."""
    match = re.fullmatch(r"([0-9]+)([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 5m, 2h or 30d")
    return int(match[1]) * UNITS_S[match[2]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lonnymq.pipeline", description=__doc__)
    parser.add_argument("--where", action="store_true", help="print the path of this file, for spark-submit")
    chosen = parser.add_subparsers(dest="step")

    def step(name: str, run: Callable[[argparse.Namespace], object], words: str) -> argparse.ArgumentParser:
        made = chosen.add_parser(name, help=words, description=words)
        made.add_argument("--lake", required=True, help="where the lake is")
        made.add_argument("--format", dest="form", choices=["delta", "parquet"], default="delta")
        made.set_defaults(run=run)
        return made

    made = step("generate", _generate, "add a synthetic history to the lake")
    made.add_argument("--rows", type=int, default=1_000_000)
    made.add_argument("--days", type=int, default=7)
    made.add_argument("--tenants", type=int, default=20)
    made.add_argument("--seed", type=int, default=1)
    made = step("ingest", _ingest, "make messages of files")
    _connection(made)
    made.add_argument("paths", nargs="+")
    made.add_argument("--job", help="the name under which this happens once")
    made.add_argument("--file-format", choices=["parquet", "csv", "json"])
    for name in ("channel", "content", "key", "dequeue-at", "delay-ms", "priority", "to-channel"):
        made.add_argument(f"--{name}", default="channel" if name == "channel" else None)
    made = step("archive", _archive, "bring history to the lake")
    _connection(made)
    made.add_argument("--checkpoint", help="where Spark keeps how far it read; in the lake unless given")
    made.add_argument("--keep", type=seconds, help="then drop archived history that is older, e.g. 30d")
    made = step("analyse", _analyse, "bring the figures up to date")
    made.add_argument("--window", type=seconds, default=60)
    made.add_argument("--full", action="store_true", help="compute every day again")
    made = step("report", _report, "write the report")
    made.add_argument("--window", type=seconds, default=60)
    made.add_argument("--output", default="report.html")
    return parser


def _connection(parser: argparse.ArgumentParser) -> None:
    # Not required: a password is better in the environment than in a list of processes.
    parser.add_argument("--dsn", default=os.environ.get("LONNYMQ_DSN", ""), help="or LONNYMQ_DSN")
    parser.add_argument("--schema", default=os.environ.get("LONNYMQ_SCHEMA", "lonnymq"))


def _lake(options: argparse.Namespace) -> steps.Lake:
    return steps.Lake(options.lake, steps.LakeFormat(options.form))


def _source(options: argparse.Namespace) -> steps.Source:
    return steps.Source(dsn=options.dsn, schema=options.schema)


def _generate(options: argparse.Namespace) -> object:
    made = steps.Synthetic(rows=options.rows, days=options.days, tenants=options.tenants, seed=options.seed)
    return f"attempts added: {steps.generate(session(), made, _lake(options), say=_say):,}"


def _ingest(options: argparse.Namespace) -> object:
    names = ("channel", "content", "key", "dequeue_at", "delay_ms", "priority", "to_channel")
    return steps.ingest(
        session(),
        options.paths,
        _source(options),
        _lake(options),
        form=steps.FileFormat(options.file_format) if options.file_format else None,
        mapping=steps.Mapping(**{name: getattr(options, name) for name in names}),
        job=options.job,
        say=_say,
    )


def _archive(options: argparse.Namespace) -> object:
    keep = None if options.keep is None else timedelta(seconds=options.keep)
    return steps.archive(
        session(), _source(options), _lake(options), checkpoint=options.checkpoint, keep=keep, say=_say
    )


def _analyse(options: argparse.Namespace) -> object:
    return steps.analyse(session(), _lake(options), window_s=options.window, is_full=options.full, say=_say)


def _report(options: argparse.Namespace) -> object:
    return steps.report(session(), _lake(options), options.output, window_s=options.window, say=_say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
