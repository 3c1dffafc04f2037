"""A password in the connection string is not shown by Spark, if it is given as the pages say."""

from collections.abc import Iterator
from typing import Any

import pytest

from lonnymq.cli.log import LogFormat
from lonnymq.cli.work import WorkerSpec
from lonnymq.embedded.server_process import ServerProcess
from lonnymq.pipeline.source import Source
from lonnymq.spark.source import REDACTED, hide_dsn

SECRET = "s3cret"
URL = f"postgresql://me:{SECRET}@127.0.0.1:1/x"
WORDS = f"host=127.0.0.1 port=1 user=me dbname=x password={SECRET}"


@pytest.fixture
def plain(spark: Any) -> Iterator[Any]:
    """A session in which nobody has said what to hide."""
    spark.conf.unset(REDACTED)
    yield spark
    spark.conf.unset(REDACTED)


def plans(spark: Any, dsn: str) -> Iterator[str]:
    """What `explain` says of each door that shows its options, and of views of them."""
    for more in ({}, {"mode": "consume"}):
        stream = spark.readStream.format("lonnymq").options(dsn=dsn, **more).load()
        stream.createOrReplaceTempView("seen")
        for frame in (stream, spark.table("seen")):
            yield explained(spark, frame, "extended")
    view = f"create or replace temporary view made using lonnymq options (dsn '{dsn}')"
    spark.sql(view)
    yield explained(spark, spark.table("made"), "extended")
    yield str(spark.sql("describe extended made").collect())


def explained(spark: Any, frame: Any, mode: str) -> str:
    return str(spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))


def test_a_password_named_by_its_word_is_in_no_plan(plain: Any) -> None:
    for dsn in (WORDS, Source(dsn=URL).options()["dsn"]):
        assert [plan for plan in plans(plain, dsn) if SECRET in plan] == []


def test_a_session_that_hides_the_dsn_hides_a_url_too(plain: Any) -> None:
    # Spark itself sees no password in a URL.
    assert [plan for plan in plans(plain, URL) if SECRET in plan] != []
    for chosen in (None, "(?i)url|mine"):
        if chosen is not None:
            plain.conf.set(REDACTED, chosen)
        hide_dsn(plain)
        hide_dsn(plain)
        assert plain.conf.get(REDACTED) == f"{chosen or '(?i)url'}|dsn"
        assert [plan for plan in plans(plain, URL) if SECRET in plan] == []


def test_no_value_that_carries_a_dsn_shows_it() -> None:
    process: Any = None
    for value in (
        Source(dsn=URL),
        WorkerSpec("shop:app", URL, "lonnymq", {}, "info", LogFormat.TEXT),
        ServerProcess(process, 1, URL),
    ):
        assert SECRET not in repr(value)
        assert SECRET not in str(value)
