"""The steps of the pipeline, run by the command line and by the script for spark-submit."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from pyarrow import parquet

from lonnymq import NewMessage, Queue, cli
from tests.pipeline.test_pages import TUTORIAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(1800)
def test_the_commands_of_the_tutorial_lead_from_a_file_to_a_report(
    spark: "SparkSession",
    queue: Queue,
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONNYMQ_DSN", dsn)
    monkeypatch.setenv("LONNYMQ_LAKE", str(tmp_path / "lake"))
    orders = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table({"tenant": ["acme", None], "n": [1, 2]}), orders)

    def run(command: str) -> str:
        assert cli.main(["pipeline", *command.split()]) == 0
        return capsys.readouterr().out

    shown = re.findall(r"^ {4}lonnymq pipeline (.+)$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE)
    # The JVM of the tests has another working directory.
    ingest, archive, analyse, report = (one.replace("orders.parquet", str(orders)) for one in shown)
    assert {"accepted": 1, "rejected": 1}.items() <= json.loads(run(f"{ingest} --json")).items()
    queue.set(history="metadata")
    queue.enqueue_many(NewMessage(channel="beta", payload=n) for n in range(9))
    queue.complete(queue.dequeue(limit=10))
    assert run(archive) == "10 attempts archived\n"
    assert json.loads(run(f"{analyse} --json"))["windows"] >= 2
    # Without options, analyse and report use windows of a minute, as in the tutorial.
    assert run("analyse").startswith("0 days computed")
    assert run(report) == run("report") == f"report written to {tmp_path / 'report.html'}\n"
    text = Path("report.html").read_text(encoding="utf-8")
    assert "acme" in text
    assert "beta" in text
    assert cli.main(["pipeline", "analyse", "--window", "7s"]) == 2
    assert "divides a day" in capsys.readouterr().err
    assert cli.main(["pipeline", "ingest", f"{orders}.json"]) == 2
    assert "a file or directory that exists" in capsys.readouterr().err


def test_the_script_for_spark_submit_runs_the_same_steps(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from lonnymq.pipeline import submit

    lake = str(tmp_path / "lake")
    assert submit.main(["--where"]) == 0
    assert Path(capsys.readouterr().out.strip()).samefile(submit.__file__)
    assert submit.main(["generate", "--lake", lake, "--rows", "100", "--days", "1"]) == 0
    assert capsys.readouterr().out == "attempts added: 100\n"
    assert submit.main(["generate", "--lake", lake, "--rows", "100", "--days", "1"]) == 0
    assert capsys.readouterr().out == "attempts added: 0\n"
    assert submit.main(["report", "--lake", lake]) == 1
    assert "no window of these days was analysed" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        submit.main(["archive", "--lake", lake, "--keep", "soon"])
    assert "is not a duration such as 90s" in capsys.readouterr().err


def test_a_new_spark_logs_only_errors_unless_logging_is_configured(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    from lonnymq.pipeline.session import LOGGING_FILE, LOGGING_VARIABLES, quiet_logging

    jvm: Any = spark.sparkContext._jvm
    logging = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration()
    assert logging.getConfigurationSource().getLocation().endswith("lonnymq/pipeline/log4j2.properties")
    assert LOGGING_FILE not in os.environ
    for name in LOGGING_VARIABLES:
        with monkeypatch.context() as chosen:
            chosen.setenv(name, "/somebody/else's")
            with quiet_logging():
                assert os.environ.get(LOGGING_FILE) in (None, "/somebody/else's")


def test_only_a_local_master_binds_the_driver_to_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    from lonnymq.pipeline.session import local_settings

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert local_settings("local[2]")["spark.driver.host"] == "127.0.0.1"
    for master in ("spark://master:7077", "yarn", "k8s://https://master", None):
        assert local_settings(master) == {}
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert local_settings("local[2]") == {}
