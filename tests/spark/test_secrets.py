"""Spark does not show the password of a connection string that is given as the documentation says."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lonnymq.cli.log import LogFormat
from lonnymq.cli.work import WorkerSpec
from lonnymq.embedded.server_process import ServerProcess
from lonnymq.pipeline.source import Source

SECRET = "s3cret"
URL = f"postgresql://me:{SECRET}@127.0.0.1:1/x"
KEYWORDS = f"host=127.0.0.1 port=1 user=me dbname=x password={SECRET}"


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


def sql_tab(spark: Any) -> Iterator[str]:
    """Yield what Spark's user interface shows of each execution so far."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    for place in range(executions.size()):
        yield executions.apply(place).physicalPlanDescription()


def test_a_password_in_keyword_form_is_shown_nowhere(spark: Any) -> None:
    for dsn in (KEYWORDS, Source(dsn=URL).options()["dsn"]):
        assert [plan for plan in plans(spark, dsn) if SECRET in plan] == []
    spark.sql(f"create table hidden (channel string) using lonnymq options (dsn '{KEYWORDS}')")
    shown = list(sql_tab(spark))
    assert any("CreateTable" in plan for plan in shown)
    assert [plan for plan in shown if SECRET in plan] == []
    # The table exists, but neither has a connection string nor can be used.
    for statement in ("select * from hidden", "insert into hidden values ('a')"):
        with pytest.raises(AnalysisException, match="A queue cannot be a table of Spark's catalog"):
            spark.sql(statement).collect()
    spark.sql("drop table hidden")


def test_values_that_contain_a_dsn_do_not_show_it() -> None:
    process: Any = None
    for value in (
        Source(dsn=URL),
        WorkerSpec("shop:app", URL, "lonnymq", {}, "info", LogFormat.TEXT),
        ServerProcess(process, 1, URL),
    ):
        assert SECRET not in repr(value)
        assert SECRET not in str(value)
