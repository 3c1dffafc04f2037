"""The steps for spark-submit: `spark-submit "$(python -m lonnymq.pipeline.submit --where)" archive ...`.

They run in the session, and so on the cluster, of spark-submit.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from lonnymq.errors import LonnyError
from lonnymq.pipeline import steps
from lonnymq.pipeline.session import get_session
from lonnymq.pipeline.spark_errors import shorten_errors

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.where:
        print(os.path.abspath(__file__))
        return 0
    if options.step is None:
        parser.error("choose a step: generate, ingest, archive, analyse, follow or report")
    try:
        with shorten_errors():
            print(options.run(options))
    except LonnyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def parse_duration(text: str) -> int:
    """Parse a duration such as 90s, 5m, 2h or 30d, and return its seconds."""
    match = re.fullmatch(r"([0-9]+)([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 5m, 2h or 30d")
    return int(match[1]) * UNITS_S[match[2]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lonnymq.pipeline", description=__doc__)
    parser.add_argument("--where", action="store_true", help="print the path of this file, for spark-submit")
    steps_parser = parser.add_subparsers(dest="step")

    def add_step(
        name: str, run: Callable[[argparse.Namespace], object], summary: str
    ) -> argparse.ArgumentParser:
        step = steps_parser.add_parser(name, help=summary, description=summary)
        step.add_argument("--lake", required=True, help="directory or URL of the lake")
        step.add_argument("--format", dest="form", choices=["delta", "parquet"], default="delta")
        step.set_defaults(run=run)
        return step

    step = add_step("generate", _generate, "add a synthetic history to the lake")
    step.add_argument("--rows", type=int, default=1_000_000)
    step.add_argument("--days", type=int, default=7)
    step.add_argument("--tenants", type=int, default=20)
    step.add_argument("--seed", type=int, default=1)
    step = add_step("ingest", _ingest, "create messages from files")
    _add_connection(step)
    step.add_argument("paths", nargs="+")
    step.add_argument("--job", help="name of the load; a named load is published once")
    step.add_argument("--file-format", choices=["parquet", "csv", "json"])
    for name in ("channel", "content", "key", "dequeue-at", "delay-ms", "priority", "headers", "to-channel"):
        step.add_argument(f"--{name}", default="channel" if name == "channel" else None)
    step = add_step("archive", _archive, "copy finished attempts to the lake")
    _add_archive(step)
    step = add_step("analyse", _analyse, "update the figures")
    step.add_argument("--window", type=parse_duration, default=60)
    step.add_argument("--full", action="store_true", help="compute every day again")
    _add_days(step)
    step = add_step("follow", _follow, "archive and analyse again and again, until SIGTERM")
    _add_archive(step)
    step.add_argument("--window", type=parse_duration, default=60)
    step.add_argument("--interval", type=parse_duration, default=60, help="time between rounds, e.g. 5m")
    step.add_argument("--once", action="store_true", help="catch up, and end")
    step = add_step("report", _report, "write the report")
    step.add_argument("--window", type=parse_duration, default=60)
    step.add_argument("--output", default="report.html")
    _add_days(step)
    return parser


def _add_connection(parser: argparse.ArgumentParser) -> None:
    # Optional, because a password is safer in the environment than in the process list.
    parser.add_argument(
        "--dsn", default=os.environ.get("LONNYMQ_DSN", ""), help="connection string (default: LONNYMQ_DSN)"
    )
    parser.add_argument("--schema", default=os.environ.get("LONNYMQ_SCHEMA", "lonnymq"))


def _add_archive(parser: argparse.ArgumentParser) -> None:
    _add_connection(parser)
    parser.add_argument("--checkpoint", help="where Spark records its progress (default: in the lake)")
    parser.add_argument(
        "--rebase", action="store_true", help="continue after a failover or restore, if that is safe"
    )
    parser.add_argument(
        "--keep", type=parse_duration, help="afterwards drop archived history older than this, e.g. 30d"
    )


def _add_days(parser: argparse.ArgumentParser) -> None:
    for name, which in (("since", "first"), ("until", "last")):
        parser.add_argument(f"--{name}", type=date.fromisoformat, help=f"the {which} day, e.g. 2030-01-31")


def _lake(options: argparse.Namespace) -> steps.Lake:
    return steps.Lake(options.lake, steps.LakeFormat(options.form))


def _source(options: argparse.Namespace) -> steps.Source:
    return steps.Source(dsn=options.dsn, schema=options.schema, rebase=getattr(options, "rebase", False))


def _generate(options: argparse.Namespace) -> object:
    synthetic = steps.SyntheticHistory(
        rows=options.rows, days=options.days, tenants=options.tenants, seed=options.seed
    )
    added = steps.generate(get_session(), synthetic, _lake(options), on_progress=_print_progress)
    return f"attempts added: {added:,}"


def _ingest(options: argparse.Namespace) -> object:
    names = ("channel", "content", "key", "dequeue_at", "delay_ms", "priority", "headers", "to_channel")
    return steps.ingest(
        get_session(),
        options.paths,
        _source(options),
        _lake(options),
        form=steps.FileFormat(options.file_format) if options.file_format else None,
        mapping=steps.Mapping(**{name: getattr(options, name) for name in names}),
        job=options.job,
        on_progress=_print_progress,
    )


def _keep(options: argparse.Namespace) -> timedelta | None:
    return None if options.keep is None else timedelta(seconds=options.keep)


def _archive(options: argparse.Namespace) -> object:
    return steps.archive(
        get_session(),
        _source(options),
        _lake(options),
        checkpoint=options.checkpoint,
        keep=_keep(options),
        on_progress=_print_progress,
    )


def _analyse(options: argparse.Namespace) -> object:
    return steps.analyse(
        get_session(),
        _lake(options),
        window_s=options.window,
        is_full=options.full,
        within=steps.DayRange(options.since, options.until),
        on_progress=_print_progress,
    )


def _follow(options: argparse.Namespace) -> object:
    settings = steps.FollowSettings(
        window_s=options.window,
        interval_s=options.interval,
        keep=_keep(options),
        checkpoint=options.checkpoint,
        is_once=options.once,
    )
    return steps.follow(
        get_session(), _source(options), _lake(options), settings, on_progress=_print_progress
    )


def _report(options: argparse.Namespace) -> object:
    return steps.report(
        get_session(),
        _lake(options),
        options.output,
        window_s=options.window,
        within=steps.DayRange(options.since, options.until),
        on_progress=_print_progress,
    )


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
