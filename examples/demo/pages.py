"""What the run was like, as a page: its history goes to a lake, is analysed there, and told."""

import importlib.util
import logging
import os
import tempfile
from pathlib import Path

from lonnymq import LonnyError

# The demo lasts for seconds, so its windows do.
WINDOW_S = 1


def tell(dsn: str) -> Path | None:
    """Archive, analyse and report; return where the page is, or None where there is no Spark."""
    if importlib.util.find_spec("pyspark") is None:
        print('\nno page about this run: it needs the extras spark and java: pip install ".[spark,java]"')
        return None
    from lonnymq.pipeline.session import SMALL, borrowed
    from lonnymq.pipeline.steps import Lake, Source, analyse, archive, report

    logging.getLogger("py4j").setLevel(logging.ERROR)
    say("\nSpark starts, to look at what has happened")
    try:
        # The page stays, for whoever wants to read it; the lake does not.
        with tempfile.TemporaryDirectory(prefix="lonnymq-demo-") as home, borrowed(settings=SMALL) as spark:
            lake = Lake(home)
            done = archive(spark, Source(dsn=dsn), lake)
            say(f"archived: {done.rows:,} attempts")
            figures = analyse(spark, lake, window_s=WINDOW_S)
            say(f"analysed: {figures.windows:,} windows of {WINDOW_S} s")
            title = "What the demo did: who waited, why, and for how long"
            written = report(spark, lake, Path(home, "report.html"), window_s=WINDOW_S, title=title)
            page = kept(written)
    except LonnyError as error:
        print(f"no page about this run: {error}")
        return None
    say(f"reported: {page.as_uri()}")
    return page


def kept(written: Path) -> Path:
    """Copy the page to where it stays, under a name that nobody has."""
    descriptor, name = tempfile.mkstemp(prefix="lonnymq-demo-", suffix=".html")
    with os.fdopen(descriptor, "wb") as file:
        file.write(written.read_bytes())
    return Path(name)


def say(line: str) -> None:
    print(line, flush=True)
