"""Write a report about the run: archive its history to a lake, analyse it, and render a page."""

import importlib.util
import logging
import os
import tempfile
from pathlib import Path

from lonnymq import LonnyError

# The demo takes seconds, so windows are short.
WINDOW_S = 1


def write_report(dsn: str) -> Path | None:
    """Archive, analyse and report; return the page's path, or None without Spark."""
    if importlib.util.find_spec("pyspark") is None:
        print('\nno report about this run: this needs the extras spark and java: pip install ".[spark,java]"')
        return None
    from lonnymq.pipeline.session import SMALL_DATA, session_scope
    from lonnymq.pipeline.steps import Lake, Source, analyse, archive, report

    logging.getLogger("py4j").setLevel(logging.ERROR)
    print_line("\nstarting Spark, to write a report about this run")
    try:
        # The lake is temporary; the page is kept, to be read.
        with (
            tempfile.TemporaryDirectory(prefix="lonnymq-demo-") as home,
            session_scope(settings=SMALL_DATA) as spark,
        ):
            lake = Lake(home)
            done = archive(spark, Source(dsn=dsn), lake)
            print_line(f"archived {done.rows:,} attempts")
            figures = analyse(spark, lake, window_s=WINDOW_S)
            print_line(f"analysed {figures.windows:,} windows of {WINDOW_S} s")
            title = "The demo: who waited, why, and for how long"
            written = report(spark, lake, Path(home, "report.html"), window_s=WINDOW_S, title=title)
            page = copy_page(written)
    except LonnyError as error:
        print(f"no report about this run: {error}")
        return None
    print_line(f"report: {page.as_uri()}")
    return page


def copy_page(written: Path) -> Path:
    """Copy the page out of the temporary directory, under a unique name."""
    descriptor, name = tempfile.mkstemp(prefix="lonnymq-demo-", suffix=".html")
    with os.fdopen(descriptor, "wb") as file:
        file.write(written.read_bytes())
    return Path(name)


def print_line(line: str) -> None:
    print(line, flush=True)
