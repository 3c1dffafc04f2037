"""Spark does not show the password of a connection string that is given as the documentation says."""

from collections.abc import Iterator
from typing import Any

import pytest

from lonnymq.cli.log import LogFormat
from lonnymq.cli.work import WorkerSpec
from lonnymq.embedded.server_process import ServerProcess
from lonnymq.pipeline.source import Source
from lonnymq.spark.source import REDACTION, hide_dsn

SECRET = "s3cret"
URL = f"postgresql://me:{SECRET}@127.0.0.1:1/x"
KEYWORDS = f"host=127.0.0.1 port=1 user=me dbname=x password={SECRET}"


@pytest.fixture
def plain(spark: Any) -> Iterator[Any]:
    """A session with Spark's default redaction."""
    spark.conf.unset(REDACTION)
    yield spark
    spark.conf.unset(REDACTION)


def plans(spark: Any, dsn: str) -> Iterator[str]:
    """Yield the plans of all frames and views that show the options of a source."""
    for more in ({}, {"mode": "consume"}):
        stream = spark.readStream.format("lonnymq").options(dsn=dsn, **more).load()
        stream.createOrReplaceTempView("seen")
        for frame in (stream, spark.table("seen")):
            yield explain(spark, frame, "extended")
    view = f"create or replace temporary view made using lonnymq options (dsn '{dsn}')"
    spark.sql(view)
    yield explain(spark, spark.table("made"), "extended")
    yield str(spark.sql("describe extended made").collect())


def explain(spark: Any, frame: Any, mode: str) -> str:
    return str(spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))


def test_a_password_in_keyword_form_appears_in_no_plan(plain: Any) -> None:
    for dsn in (KEYWORDS, Source(dsn=URL).options()["dsn"]):
        assert [plan for plan in plans(plain, dsn) if SECRET in plan] == []


def test_hide_dsn_also_hides_a_url(plain: Any) -> None:
    # By default Spark does not recognise the password in a URL.
    assert [plan for plan in plans(plain, URL) if SECRET in plan] != []
    for chosen in (None, "(?i)url|mine"):
        if chosen is not None:
            plain.conf.set(REDACTION, chosen)
        hide_dsn(plain)
        hide_dsn(plain)
        assert plain.conf.get(REDACTION) == f"{chosen or '(?i)url'}|dsn"
        assert [plan for plan in plans(plain, URL) if SECRET in plan] == []


def test_values_that_contain_a_dsn_do_not_show_it() -> None:
    process: Any = None
    for value in (
        Source(dsn=URL),
        WorkerSpec("shop:app", URL, "lonnymq", {}, "info", LogFormat.TEXT),
        ServerProcess(process, 1, URL),
    ):
        assert SECRET not in repr(value)
        assert SECRET not in str(value)
